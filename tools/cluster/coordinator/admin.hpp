// What administrators ask a coordinator over its Unix socket: one line of JSON, and one for the answer. Root only, by the socket's rights.
#pragma once

#include <map>
#include <string>

#include "tools/cluster/coordinator/coordinator.hpp"
#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota::cluster {

class Admin {
public:
    explicit Admin(Coordinator& coordinator, Clock& clock) : coordinator_(coordinator), clock_(clock) {}
    ~Admin();
    Result<void> listen(const std::string& path);
    int fd() const noexcept { return fd_; }
    void accept();  // one client, which is given a second for its line

private:
    void answer(int client, const std::string& line);
    void apply(int client, const Json& request);
    Json show(const std::string& tenant) const;
    Json status() const;
    Coordinator::Done reply(int client);

    Coordinator& coordinator_;
    Clock& clock_;
    int fd_ = -1;
};

}  // namespace rdmaquota::cluster
