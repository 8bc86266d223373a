# Sourced by the scripts of tools/: one-line messages, coloured only on a terminal.
if [ -t 2 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
say() { echo "${bold}twill:${plain} $*" >&2; }
die() {
  echo "twill: $*" >&2
  exit 1
}
