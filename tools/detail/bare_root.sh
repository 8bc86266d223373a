# Sourced by the scripts that try twill in a bare root of a Debian release, after say.sh. They need root and debootstrap.

# make_root SUITE FOLDER: debootstraps SUITE into FOLDER unless that was done before, and gives it this machine's name
# service, mirror, certificates and settings of pip.
make_root() {
  local suite=$1 root=$2 mirror path
  [ "$(id -u)" = 0 ] || die "$0 needs root (debootstrap, chroot)"
  if [ ! -e "$root/.made" ]; then
    command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
    mkdir -p "$root" && chmod 755 "$root"
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\(http[^ ]*\) bookworm main.*/\2/p' \
      /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1 || true)
    say "debootstrap $suite into $root"
    debootstrap --variant=minbase "$suite" "$root" "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
      { tail "$root.log" >&2; die "debootstrap failed"; }
    touch "$root/.made"
  fi
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  for path in /etc/pip.conf /etc/hosts; do
    if [ -e "$path" ]; then cp "$path" "$root$path"; fi
  done
  # Beside the root's own certificates, which installing packages rewrites.
  root_certificates=/etc/ssl/bare-root.crt
  mkdir -p "$root/etc/ssl" && cp /etc/ssl/certs/ca-certificates.crt "$root$root_certificates"
  cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  # A mirror may be a snapshot of some weeks ago: its release file is then past its date.
  echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/99bare-root"
}

mount_root() {
  mountpoint -q "$1/proc" || mount -t proc proc "$1/proc"
  mountpoint -q "$1/dev" || { mount --rbind /dev "$1/dev" && mount --make-rslave "$1/dev"; }
}
unmount_root() { umount -l "$1/proc" "$1/dev" 2>/dev/null || true; }

# in_root FOLDER COMMAND...: with a bare environment, save for what reaches this machine's network.
in_root() {
  local root=$1 settings
  shift
  mapfile -t settings < <(env | grep -E '^(PIP_INDEX|PIP_EXTRA|PIP_DEFAULT|https?_proxy=|HTTPS?_PROXY=|no_proxy=|DEB(FULLNAME|EMAIL)=)')
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    PIP_CERT="$root_certificates" SSL_CERT_FILE="$root_certificates" "${settings[@]}" "$@"
}
apt_in_root() {
  local root=$1
  shift
  in_root "$root" DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Dpkg::Use-Pty=0 "$@" >"$root/tmp/apt.log" 2>&1 ||
    { tail -n 20 "$root/tmp/apt.log" >&2; die "apt-get $* failed in $root"; }
}
