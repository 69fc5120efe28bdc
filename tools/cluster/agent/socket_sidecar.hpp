// rdmaquotad, by its control socket.
#pragma once

#include <string>

#include "tools/cluster/agent/agent.hpp"

namespace rdmaquota::cluster {

class SocketSidecar : public Sidecar {
public:
    explicit SocketSidecar(std::string directory) : directory_(std::move(directory)) {}
    ~SocketSidecar() override;
    Result<NodeReport> take(const Delivery* delivery) override;

    // A descriptor that becomes readable when programs ask for more than the node has; -1: none, rdmaquotad does not run.
    int events();
    // Reads what the sidecar sent. True when a program asked for a larger ceiling.
    bool read_events();

private:
    std::string directory_, text_;
    int events_ = -1;
};

}  // namespace rdmaquota::cluster
