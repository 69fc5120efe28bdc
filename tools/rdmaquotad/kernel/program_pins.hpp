// The BPF program as the kernel keeps it (guard_pins.hpp): all of its maps, its links, and the program `settle`. One that has
// the same version is taken over as it is, so that it goes on without a gap and forgets nothing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policy/result.hpp"

struct bpf_link;
struct bpf_object;

namespace rdmaquota {

struct ProgramLink {
    std::string program;
    bpf_link* link;
};

// Descriptors of the programs that the sidecar itself runs.
struct RunPrograms {
    int settle = -1, take_stock = -1;

    void close();
};

// Of the program as it was compiled.
std::string program_version(const void* object, std::size_t bytes);

// Pins under the version, complete or not at all. What was pinned under other names stays.
Result<void> pin_program(bpf_object* object, const std::vector<ProgramLink>& links, const RunPrograms& run,
                         const std::string& version);

struct PinnedProgram {
    std::vector<ProgramLink> links;
    RunPrograms run;
};
// For an object that is open and not loaded: it gets the maps that are pinned, and loads no program. The caller owns the
// links, and the descriptors.
Result<PinnedProgram> take_pinned(bpf_object* object, const std::string& version);

}  // namespace rdmaquota
