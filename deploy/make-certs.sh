#!/bin/sh
# Makes a certificate authority and one certificate per role for a cluster on
# this machine or for tests.
#
# usage: deploy/make-certs.sh DIR [NAME...]
#
# NAMEs are further DNS names or IP addresses by which clients reach the router
# (localhost and 127.0.0.1 are always there). DAYS=90 sets how long the
# certificates last. Run it again in the same DIR for new certificates from the
# same authority; each file is replaced in one step, and running processes pick
# it up.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 DIR [NAME...]" >&2; exit 2; }
command -v openssl >/dev/null || { echo "$0: openssl is missing" >&2; exit 1; }
dir=$1
shift
days=${DAYS:-90}
names=DNS:localhost,IP:127.0.0.1,IP:::1
for name in "$@"; do
  case $name in
    *:*) kind=IP ;;
    *[!0-9.]*) kind=DNS ;;
    *) kind=IP ;;
  esac
  names=$names,$kind:$name
done

umask 077
mkdir -p "$dir"
work=$(mktemp -d "$dir/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT

new_key() {
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

if [ ! -f "$dir/ca.key" ]; then
  new_key "$work/ca.key"
  openssl req -x509 -new -key "$work/ca.key" -days 3650 \
    -subj "/O=Baton/CN=Baton local CA" \
    -addext basicConstraints=critical,CA:TRUE \
    -addext keyUsage=critical,keyCertSign,cRLSign -out "$work/ca.crt"
  mv "$work/ca.key" "$work/ca.crt" "$dir/"
fi

for role in router prefill decode client; do
  new_key "$work/$role.key"
  openssl req -new -key "$work/$role.key" -subj "/O=Baton/CN=$role" \
    -out "$work/$role.csr"
  cat > "$work/$role.ext" <<END
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
subjectAltName=URI:baton://role/$role,$names
END
  openssl x509 -req -in "$work/$role.csr" -CA "$dir/ca.crt" \
    -CAkey "$dir/ca.key" -set_serial "0x$(openssl rand -hex 16)" \
    -days "$days" -extfile "$work/$role.ext" -out "$work/$role.crt" \
    2>"$work/log" || { cat "$work/log" >&2; exit 1; }
done
# Keys first: a certificate never stands beside another one's key for long.
for role in router prefill decode client; do
  mv "$work/$role.key" "$dir/$role.key"
  chmod 644 "$work/$role.crt"
  mv "$work/$role.crt" "$dir/$role.crt"
done
chmod 644 "$dir/ca.crt"
echo "$dir: ca.crt; certificates and keys of router, prefill, decode, client"
