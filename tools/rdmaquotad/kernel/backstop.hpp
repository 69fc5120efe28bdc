// The kernel's own bound beneath the quota: rdma.max of a cgroup, for hca_handle and hca_object.
//
// The value that a file had is recorded in DIR/backstop before the file is changed. `put_back` restores it, or an orderly
// end, or the next daemon when this one was killed. Values that others wrote meanwhile are left alone. One thread.
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

    // Takes over what an earlier daemon recorded, as if this one had set it. Moves a record that it cannot parse to
    // DIR/backstop.unusable.TIME; the error says so.
    Result<void> load();

    // Bounds the device in cgroup `group` ("/slurm/job_7") by `bound`, or by what was found there if that is less.
    // Replaces what was set here before. Fails where there is no rdma.max: in the root, and in groups without the rdma
    // controller.
    Result<void> set(const std::string& group, const std::string& device, const HcaCounts& bound);
    void put_back(const std::string& group, const std::string& device);
    void put_back_all();

    bool bounds(const std::string& group, const std::string& device) const;
    std::vector<std::pair<std::string, std::string>> all() const;                          // group and device
    Result<HcaCounts> current(const std::string& group, const std::string& device) const;  // rdma.current
    // How often rdma.max was reached so far in this group or below it (rdma.events). Fails before kernel 7.2.
    Result<HcaCounts> denied(const std::string& group, const std::string& device) const;

private:
    using CgroupDevice = std::pair<std::string, std::string>;
    // `before` is the value set until then. It is still in the file if a daemon was killed after the record was written.
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
