#include "tools/rdmaquotad/serve/process_names.hpp"

#include <algorithm>
#include <utility>

namespace rdmaquota {

// In small parts, after each of which the time may be over.
void ProcessNames::ask(const std::vector<ProcessView*>& processes, const std::string& ledger, Clock::time_point now,
                       OfLedger& known) {
    constexpr std::ptrdiff_t part = 32;
    if (processes.empty()) return;
    if (!processes_ || now - listed_ >= unknown_for) processes_.emplace(proc_), listed_ = now;
    const auto end = Clock::now() + time_for_all;
    processes_->allow(time_for_mappings);
    for (auto begin = processes.begin();
         begin != processes.end() && (begin == processes.begin() || Clock::now() < end);) {
        const std::vector some(begin, begin + std::min(part, processes.end() - begin));
        begin += std::ssize(some);
        std::vector<Who> whose;
        for (const auto* process : some) whose.push_back(Who(*process));
        processes_->name(some, ledger);
        for (std::size_t i = 0; i < some.size(); ++i)
            known[whose[i]] = {some[i]->pid, some[i]->inner_pid, some[i]->cgroup,
                               now + (some[i]->pid == 0 ? unknown_for : known_for)};
    }
}

void ProcessNames::name(TenantView& tenant, const std::string& ledger, OfLedger& known, Clock::time_point now) {
    auto before = std::exchange(known, {});
    std::vector<Who> whose;
    std::vector<ProcessView*> asked, again;  // those of whom nothing is known yet come first
    for (auto& process : tenant.processes) {
        auto found = before.extract(whose.emplace_back(process));
        if (found.empty())
            asked.push_back(&process);
        else if (now >= found.mapped().due)
            again.push_back(&process);
        if (!found.empty()) known.insert(std::move(found));
    }
    asked.insert(asked.end(), again.begin(), again.end());
    ask(asked, ledger, now, known);
    for (std::size_t i = 0; i < whose.size(); ++i) {
        const auto found = known.find(whose[i]);
        const auto name = found == known.end() ? Known{0, whose[i].pid, {}, {}} : found->second;
        auto& process = tenant.processes[i];
        process.pid = name.pid, process.inner_pid = name.inner_pid, process.cgroup = name.cgroup;
    }
    std::sort(tenant.processes.begin(), tenant.processes.end(),
              [](const ProcessView& a, const ProcessView& b) { return a.pid < b.pid; });
}

}  // namespace rdmaquota
