// One mount tree at a second place.
#pragma once

#include <string>

namespace rdmaquota {

// Mounts what is mounted at `from`, with all mounts below it, at `to`, a directory that is created where it is missing,
// as is the one above it. Mounts that come and go below `from` later do so below `to`; unmounting `to` leaves `from` as
// it is. Only the mounts below `to` can be written, never `to` itself: a container may have all of /dev/infiniband, and
// its root could otherwise create and replace files. 0 or an errno; EPERM without CAP_SYS_ADMIN, ENOSYS before
// Linux 5.12.
int mount_copy(const std::string& from, const std::string& to);

}  // namespace rdmaquota
