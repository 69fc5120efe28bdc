#!/bin/sh
# install-in-guest.sh: puts the staged build where an installation puts it; run by run.sh --install, in the guest.
#
# RDMAQUOTA_STAGE   the files, as Meson installed them with DESTDIR
# INSTALL_ROOT      with --root: the other root file system. It may lack the libraries of our tools; Debian's library
#                   directory is the same in each.
# RDMAQUOTA_POLICY  a policy file to load instead of the installed one
# This machine's tree gets the files in either case: `reload` runs there, and writes to /run, which both share.
set -eu

for root in / ${INSTALL_ROOT:+"$INSTALL_ROOT"}; do
    cp -a "$RDMAQUOTA_STAGE/." "$root"
    # As Meson does without DESTDIR: the shadow libraries are found through the loader's cache.
    chroot "$root" /sbin/ldconfig
done
rdmaquota reload ${RDMAQUOTA_POLICY:+"$RDMAQUOTA_POLICY"}
# It mounts file systems, which the other root does not see by itself.
[ -z "${INSTALL_ROOT:-}" ] || [ ! -d /run/rdmaquota ] || mount --rbind /run/rdmaquota "$INSTALL_ROOT/run/rdmaquota"
