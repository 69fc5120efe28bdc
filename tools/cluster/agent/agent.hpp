// A node's agent: carries the sidecar's figures to the coordinator that leads, and its ceilings to the sidecar.
//
// It decides nothing: the sidecar keeps the ceilings, and refuses older ones (tools/common/cluster/ceilings.hpp). When the agent or the
// coordinators are away, the ceilings stay. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/cluster/core/ports.hpp"

namespace rdmaquota::cluster {

// rdmaquotad on this node. Waits for the answer.
class Sidecar {
public:
    virtual ~Sidecar() = default;
    // Takes the delivery, if there is one, and reads the figures then.
    virtual Result<NodeReport> take(const Delivery* delivery) = 0;
};

// The stream to one of the coordinators.
class Uplink {
public:
    virtual ~Uplink() = default;
    virtual void connect() = 0;  // to the next coordinator in turn; connected or disconnected is called
    virtual void send(const FromNode& word) = 0;
};

class Agent {
public:
    struct World {
        Clock& clock;
        Sidecar& sidecar;
        Uplink& uplink;
        std::function<std::uint32_t()> random;
        std::function<void(const std::string&)> note = [](const std::string&) {};
    };
    explicit Agent(World world) : world_(std::move(world)) {}

    void tick();  // as often as until next_tick
    Time next_tick() const noexcept;
    void received(const ToNode& word);
    void disconnected(const std::string& why);
    // A program asks for more than the node has.
    void asked() { next_look_ = {}; }

    bool is_heard() const noexcept { return heard_; }

private:
    void look(bool say_all);

    World world_;
    std::optional<ToNode> word_;      // the newest of this stream
    std::optional<NodeReport> said_;  // in this stream
    bool connecting_ = false, heard_ = false, taken_ = false;
    unsigned attempts_ = 0;
    Time next_look_{}, next_attempt_{};
    std::string problem_;
};

}  // namespace rdmaquota::cluster
