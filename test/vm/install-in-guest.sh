#!/bin/sh
# install-in-guest.sh: installs the build as an administrator would; run by run.sh --install, in the guest.
#
# RDMAQUOTA_BUILD   the Meson build directory
# INSTALL_ROOT      with --root: the other root file system. It has no Meson and may lack the libraries of our tools,
#                   so the files are put there from here; Debian's library directory is the same in each.
# RDMAQUOTA_POLICY  a policy file to load instead of the installed one
# This machine's tree is installed to in either case: `reload` runs there, and writes to /run, which both share.
set -eu

DESTDIR='' meson install -C "$RDMAQUOTA_BUILD" --no-rebuild --quiet
if [ -n "${INSTALL_ROOT:-}" ]; then
    DESTDIR="$INSTALL_ROOT" meson install -C "$RDMAQUOTA_BUILD" --no-rebuild --quiet
    # With DESTDIR nothing refreshes the loader's cache, and the shadow libraries are found through it.
    chroot "$INSTALL_ROOT" /sbin/ldconfig
fi
rdmaquota reload ${RDMAQUOTA_POLICY:+"$RDMAQUOTA_POLICY"}
