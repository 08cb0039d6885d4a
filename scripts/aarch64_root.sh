#!/usr/bin/env bash
# Makes the folder that heed is cross-built against and run from on other machines: Debian's arm64 packages of the
# libraries, unpacked. Does nothing, offline, when it is there.
#
#   scripts/aarch64_root.sh FOLDER PACKAGE…
#
# The packages are not installed beside this machine's own, since some of them exclude the same
# package of another architecture. apt resolves and downloads them with a state of its own, and needs no privileges.
set -euo pipefail

folder=$1
packages=("${@:2}")
script=$(realpath "${BASH_SOURCE[0]}")
state=$folder.apt

# What the folder was made from; the last thing to be written.
key=$(cat "$script" <(printf '%s\n' "${packages[@]}") | sha256sum | cut -d' ' -f1)
if [ "$(cat "$folder/key" 2>/dev/null)" = "$key" ]; then
  exit 0
fi
if ! grep -q '^ID=debian' /etc/os-release; then
  echo "The arm64 packages are Debian's; unpack the equivalents of these into $folder: ${packages[*]}" >&2
  exit 1
fi

apt() {
  apt-get -y -q -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User= "$@" </dev/null
}

echo "Unpacking arm64 packages into $folder: ${packages[*]}"
rm -rf "$folder" "$state"
mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
state=$(realpath "$state")
touch "$state/status"  # nothing is installed: all dependencies are downloaded too
apt update
apt install --download-only --no-install-recommends "${packages[@]}"

# Packages are unpacked into a file system in which /lib is /usr/lib, as in an installed Debian.
for name in bin lib sbin; do
  mkdir -p "$folder/usr/$name"
  ln -s "usr/$name" "$folder/$name"
done
for package in "$state"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --no-same-owner --keep-directory-symlink \
    --exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale'
done

# Absolute links would lead to this machine's own libraries.
find "$folder" -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link target; do
  ln -sfnr "$folder$target" "$link"
done

rm -r "$state"
echo "$key" >"$folder/key"
