"""Starts vllm-router with the given options, as its own launcher does. That one imports much of a web framework for
another mode, which is not needed here."""

import argparse

from vllm_router.router import Router
from vllm_router.router_args import RouterArgs

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    RouterArgs.add_cli_args(parser, use_router_prefix=False)
    Router.from_args(RouterArgs.from_cli_args(parser.parse_args(), use_router_prefix=False)).start()
