// The agent's stream to a coordinator, over gRPC with mTLS.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/cluster/agent/agent.hpp"
#include "tools/cluster/wire/mailbox.hpp"

namespace rdmaquota::cluster {

class Stream : public Uplink {
public:
    // `addresses` of the coordinators, HOST:PORT. The agent is called in the mailbox's thread.
    Stream(std::vector<std::string> addresses, const Certificates& certificates, Mailbox& mailbox, std::function<Agent&()> agent);
    ~Stream() override;
    void connect() override;
    void send(const FromNode& word) override;

private:
    class Call;
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace rdmaquota::cluster
