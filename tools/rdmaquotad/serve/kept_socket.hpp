// A listening socket of the loopback address that systemd keeps while the service restarts (FileDescriptorStoreMax=),
// so that no user can take its port meanwhile and be asked in the sidecar's place. Without systemd a socket ends with
// its process. One thread.
#pragma once

#include <cstdint>
#include <string>

namespace rdmaquota {

// The descriptor that systemd has kept under this name, where it listens at this port; else -1, and systemd keeps none
// any more.
int take_kept_socket(const std::string& name, std::uint16_t port);

// A new one that systemd keeps from now on; -1 with errno.
int make_kept_socket(const std::string& name, std::uint16_t port);

}  // namespace rdmaquota
