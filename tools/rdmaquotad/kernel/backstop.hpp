// The kernel's own bound beneath the quota: rdma.max of a cgroup, for hca_handle and hca_object.
//
// What a file said before it was changed is written to DIR/backstop first, and put back by `put_back`, by
// an orderly end, or by the next daemon if this one was killed at any moment. A value that somebody else wrote
// meanwhile is theirs and stays. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policy/limit.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// One line of rdma.max or rdma.current; `unlimited` is "max".
struct HcaCounts {
    std::uint64_t handle = unlimited;
    std::uint64_t object = unlimited;
    bool operator==(const HcaCounts&) const = default;
};

// By device, from the text of rdma.max or rdma.current; with `key` ".max", the denials in that of rdma.events.
std::map<std::string, HcaCounts> parse_hca_counts(const std::string& text, const std::string& key = "");

class Backstop {
public:
    // `directory` is the quota directory, `root` where cgroup2 is mounted.
    explicit Backstop(std::string directory, std::string root = "/sys/fs/cgroup");

    // Takes over what an earlier daemon recorded, as if this one had set it. A record that cannot be understood is
    // moved to DIR/backstop.unusable.TIME, as the error says.
    Result<void> load();

    // Bounds the device in cgroup `group` ("/slurm/job_7") by `bound`, or by what was found there, if that is less;
    // it replaces what was set here before. The error
    // says what is missing: the root has no rdma.max, and others only with the rdma controller.
    Result<void> set(const std::string& group, const std::string& device, const HcaCounts& bound);
    void put_back(const std::string& group, const std::string& device);
    void put_back_all();

    bool bounds(const std::string& group, const std::string& device) const;
    std::vector<std::pair<std::string, std::string>> all() const;  // group and device
    Result<HcaCounts> current(const std::string& group, const std::string& device) const;  // rdma.current
    // How often rdma.max in this group or below it was reached so far; kernels before 7.2 do not tell (rdma.events).
    Result<HcaCounts> denied(const std::string& group, const std::string& device) const;

private:
    using CgroupDevice = std::pair<std::string, std::string>;
    // `before` is what was set until then: it still stands when a daemon was killed between record and file.
    struct Change {
        HcaCounts found, set, before;
        bool made(const HcaCounts& now) const { return now == set || now == before; }
    };
    Result<HcaCounts> read(const std::string& group, const char* file, const std::string& device,
                           const char* key = "") const;
    Result<void> write(const CgroupDevice& place, const HcaCounts& bound) const;
    Result<void> record() const;
    Error set_aside() const;

    std::string path_, root_;
    std::map<CgroupDevice, Change> changes_;
};

// The cgroup2 path of a process, "/" for the root; empty when it is gone.
std::string cgroup_of(std::uint32_t pid);

}  // namespace rdmaquota
