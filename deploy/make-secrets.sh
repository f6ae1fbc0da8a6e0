#!/bin/sh
# Writes the secrets of compose.yaml into secrets/, once: files that exist are kept. Only you may enter the folder; the files
# are readable for the containers' user, who has another number than you.
set -eu
cd "$(dirname "$0")/.."
mkdir -p secrets
chmod 700 secrets
umask 022

write() {
  [ -s "secrets/$1" ] || printf '%s\n' "$2" > "secrets/$1"
}
random() {
  od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

write postgres-password "$(random)"
write database-url "postgres://millrace:$(cat secrets/postgres-password)@postgres:5432/millrace"
write root-key "mrk_$(random)"
write secret-key "$(random)"
