// Makes tenants of templates for those who ask for them, and removes those that nobody needs any more. By root, under the
// lock of the node's policy.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/loop/question.hpp"

namespace rdmaquota {

struct MadeInstance {
    std::string tenant;  // its key
    bool made;           // false: it was there, or the process needs none
};

class Instances {
public:
    // A node has no more tenants than this. Whoever may make cgroups could ask for any number, so a user gets so many in ten minutes,
    // more in cgroups that root made (kubelet's for pods, a login's), and root any number.
    static constexpr std::size_t most_tenants = 4096, most_for_user = 64, most_in_cgroups_of_root = 1024;
    // A tenant of a template for cgroups goes when it was at rest for so long.
    static constexpr std::chrono::minutes kept_at_rest{10};

    // A tenant is made in a child process. Its answer is waited for so long, and another child takes its place after.
    static constexpr std::chrono::milliseconds answered_within{1000}, given_up{30000};

    // Makes the tenant KEY of the template FROM in DIRECTORY.
    using Maker = std::function<Result<void>(const std::string& directory, const std::string& from, const std::string& key)>;

    explicit Instances(Node& node);
    Instances(Node& node, Maker maker, std::string cgroup_root = "/sys/fs/cgroup");  // for tests

    // The tenant that process `pid` of `user` belongs to by the node's matches, made if it is one of a template and is
    // missing. An error when the process is another user's, or gone.
    Result<MadeInstance> make_for(pid_t pid, uid_t user);
    // For a process or thread whose ids and cgroup were read already, where the node has a policy.
    Result<MadeInstance> make_for(const ProcessSubject& subject, uid_t user);

    // Is told the key of each tenant that was made, before its program goes on.
    void on_made(std::function<void(const std::string& key)> told) { told_ = std::move(told); }

    // A tenant is being made, whose answer was not waited for.
    bool is_making() const noexcept { return making_.has_value(); }

    // Removes what ended, and what has rested long. Call it now and then. Returns whether any went.
    bool remove_unused();

private:
    using Clock = std::chrono::steady_clock;
    struct Rest {
        std::uint64_t claims;
        Clock::time_point since;
    };
    struct Given {
        std::size_t count = 0;
        Clock::time_point since{};
        bool said = false;  // that there are no more
    };
    Result<void> check_room(const ProcessSubject& subject, uid_t user);
    std::size_t most_for(const ProcessSubject& subject, uid_t user) const;
    Result<void> make(const std::string& from, const std::string& key);
    bool has_rested(const Tenant& tenant);

    Node& node_;
    Maker maker_;
    std::function<void(const std::string& key)> told_ = [](const std::string&) {};
    std::string cgroup_root_;
    std::optional<Question> making_;
    Clock::time_point asked_{};
    std::map<std::string, Rest> rests_;  // by key
    std::map<uid_t, Given> given_;
};

}  // namespace rdmaquota
