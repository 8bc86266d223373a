// The page at "/routes": what can be asked of this server.
#pragma once

#include <string_view>

namespace twill::net {

inline constexpr std::string_view routes_page = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>twill</title>
<style>body{font:16px/1.5 sans-serif;max-width:46em;margin:3em auto;padding:0 1em}
code{background:#eee;padding:.1em .3em}td{padding:.15em 1em .15em 0;vertical-align:top}</style>
</head><body><h1>twill</h1><p>A language model server. OpenAI clients use the base URL <code>v1</code>; <a href="./">the
chat page</a> talks to the model.</p>
<table>
<tr><td><code>POST /v1/chat/completions</code></td><td>chat; server-sent events with <code>stream</code></td></tr>
<tr><td><code>POST /v1/completions</code></td><td>text or token ids in, text out</td></tr>
<tr><td><code>POST /v1/responses</code></td><td>OpenAI Responses</td></tr>
<tr><td><code>GET /v1/responses</code></td><td>the same over WebSocket</td></tr>
<tr><td><code>GET /v1/stream</code></td><td>twill's lean WebSocket dialect (net/STREAM.md)</td></tr>
<tr><td><code>GET <a href="v1/models">/v1/models</a></code></td><td>what is served</td></tr>
<tr><td><code>POST /tokenize, /detokenize</code></td><td>text to ids and back</td></tr>
<tr><td><code>GET <a href="tokenizer_info">/tokenizer_info</a></code></td><td>special tokens, limits, chat template</td></tr>
<tr><td><code>GET <a href="health">/health</a>, <a href="ready">/ready</a></code></td><td>liveness, readiness</td></tr>
<tr><td><code>GET <a href="metrics">/metrics</a></code></td><td>Prometheus</td></tr>
<tr><td><code>GET <a href="version">/version</a></code></td><td>version</td></tr>
</table></body></html>
)html";

} // namespace twill::net
