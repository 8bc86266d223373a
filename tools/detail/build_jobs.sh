# Sourced by the scripts of tools/ that compile: how many compilers may run at once.
# One for each core, but no more than have 2 GB of free memory each, and two in any case.
build_jobs() {
  awk -v cores="$(nproc)" '/^MemAvailable/ { n = int($2 / 2000000); if (n > cores) n = cores; print (n < 2 ? 2 : n) }' /proc/meminfo
}
