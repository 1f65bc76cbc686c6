#!/usr/bin/env bash
# Takes the pictures in docs/pictures: the real dashboard with a made-up fleet
# in a real tmux, at four sizes. Needs tmux and fonts-dejavu-core.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
socket=$work/tmux
trap 'tmux -S "$socket" kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
go build -o "$work/show" ./tui/tuitest/show
(cd hack/shot && go build -o "$work/shot" .)
mkdir -p docs/pictures
tmux -S "$socket" -f /dev/null new-session -d -s keep cat # so that the server stays

# take NAME FLEET KEYS…: opens the dashboard, presses the keys, waits for the
# screen to settle and draws it.
take() {
  name=$1 fleet=$2
  shift 2
  for size in 40x10 80x24 120x40 200x50; do
    w=${size%x*} h=${size#*x}
    tmux -S "$socket" -f /dev/null new-session -d -x "$w" -y "$h" -s p "env TERM=tmux-256color COLORTERM=truecolor LANG=C.UTF-8 $work/show -fleet $fleet"
    tmux -S "$socket" set -g status off
    tmux -S "$socket" set -s escape-time 0
    sleep 1.2
    for key in "$@"; do
      tmux -S "$socket" send-keys -t p "$key"
      sleep 0.7
    done
    sleep 0.8
    tmux -S "$socket" capture-pane -e -p -t p | "$work/shot" "$w" "$h" "docs/pictures/$name-$size.png"
    tmux -S "$socket" kill-session -t p
  done
}

take main "drawn -bar"
take request drawn r
take deny drawn r x
take typing "drawn -bar" Enter
take changes "drawn -bar" 2
take activity "drawn -bar" 3
take sandbox "drawn -bar" 4
take new "drawn -bar" n
take help "drawn -bar" '?'
take confirm "drawn -bar" x
take first first
take no-sandbox bare
take empty empty
cp docs/pictures/request-120x40.png docs/main.png
