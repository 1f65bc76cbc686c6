#!/usr/bin/env bash
# Tries fletch where nothing is installed: makes a bare Debian 12 with nothing
# but Go in it, enters it, and runs there what a newcomer would. Run it by hand,
# as root, on Debian:
#
#   hack/bare.sh            make run's steps, then .ci/run
#   hack/bare.sh run|test   one of them
#   hack/bare.sh shell      a shell in it
#
# The root is entered with pivot_root in mount and pid namespaces of its own:
# after a mere chroot the kernel refuses user namespaces, and so bubblewrap.
# BARE names the directory (default /var/tmp/fletch-bare); it is made once, and
# BARE_FRESH=1 makes it again.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
bare=${BARE:-/var/tmp/fletch-bare}
what=${1:-all}
[ "$(id -u)" -eq 0 ] || { echo "error: needs root" >&2; exit 1; }

if [ "${BARE_FRESH:-}" = 1 ]; then rm -rf --one-file-system "$bare"; fi

if [ ! -e "$bare/.made" ]; then
  if ! command -v debootstrap >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
  fi
  echo "making a bare Debian 12 in $bare"
  debootstrap --variant=minbase bookworm "$bare" http://deb.debian.org/debian >"$bare.log" 2>&1 ||
    { tail -20 "$bare.log" >&2; exit 1; }
  # Packages are reached the way this machine reaches them.
  cp /etc/apt/sources.list.d/debian.sources "$bare/etc/apt/sources.list.d/" 2>/dev/null && : >"$bare/etc/apt/sources.list"
  cp /etc/apt/apt.conf.d/99* "$bare/etc/apt/apt.conf.d/" 2>/dev/null || true
  touch "$bare/.made"
fi

# Go, its settings and what it has downloaded; make, which a newcomer has.
mkdir -p "$bare/usr/local" "$bare/root/go/pkg" "$bare/root/.config/go"
[ -d "$bare/usr/local/go" ] || cp -a "$(go env GOROOT)" "$bare/usr/local/go"
rm -rf "$bare/root/go/pkg/mod"
cp -a "$(go env GOMODCACHE)" "$bare/root/go/pkg/mod"
cp "$(go env GOENV)" "$bare/root/.config/go/env" 2>/dev/null || true
cp -L /etc/resolv.conf /etc/hosts "$bare/etc/"

# A clean checkout of what is committed.
rm -rf "$bare/src"
git clone -q --no-hardlinks "$here" "$bare/src"

cat >"$bare/inside.sh" <<'INSIDE'
set -euo pipefail
cd /src
case $1 in
shell) exec bash -i ;;
esac
if ! command -v make >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends make >/dev/null 2>&1
fi
case $1 in
run | all)
  # make run asks, builds and starts the dashboard; doctor in its place needs
  # no terminal.
  echo y | hack/run.sh doctor
  bin/fletch demo --headless
  ;;
esac
case $1 in
test | all) .ci/run </dev/null ;;
esac
INSIDE

cat >"$bare/enter.sh" <<'ENTER'
set -euo pipefail
bare=$1 what=$2
mount --make-rprivate /
mount --bind "$bare" "$bare"
cd "$bare"
mkdir -p proc sys dev tmp run old
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 dev dev
for node in null zero full random urandom tty; do
  touch "dev/$node"
  mount --bind "/dev/$node" "dev/$node"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mount -t tmpfs -o mode=1777,size=2g shm dev/shm
mount -t tmpfs -o mode=1777,size=8g tmp tmp
mount -t tmpfs -o mode=755 run run
pivot_root . old
cd /
umount -l old
exec env -i HOME=/root USER=root TERM="${TERM:-xterm-256color}" LANG=C.UTF-8 CI=true \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin \
  bash /inside.sh "$what"
ENTER

exec unshare --mount --pid --fork --kill-child bash "$bare/enter.sh" "$bare" "$what"
