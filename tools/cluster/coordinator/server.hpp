// The agents' streams at a coordinator, over gRPC with mTLS: a client is the node that its certificate names.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/cluster/wire/mailbox.hpp"

namespace rdmaquota::cluster {

class Server : public Streams {
public:
    struct Listener {
        std::function<void(StreamId, const std::string& node)> opened;
        std::function<void(StreamId, const FromNode&)> received;
        std::function<void(StreamId)> closed;
    };
    // Serves until it is destroyed; the listener is called in the mailbox's thread.
    static Result<std::unique_ptr<Server>> start(const std::string& address, const Certificates& certificates, Mailbox& mailbox,
                                                 Listener listener);
    ~Server() override;

    void send(StreamId stream, const ToNode& word) override;
    void close(StreamId stream, const std::string& why) override;

private:
    struct Parts;
    explicit Server(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

}  // namespace rdmaquota::cluster
