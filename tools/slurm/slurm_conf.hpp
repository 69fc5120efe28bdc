// What slurm.conf says. As Slurm does, takes keys in any case, the last value of each, and follows `Include FILE`, here from
// the directory of the file with that line.
#pragma once

#include <string>

namespace rdmaquota {

enum class Stage { prolog, epilog };

// The seconds after which Slurm ends a prolog or an epilog, and drains the node: the smallest of PrologEpilogTimeout and
// PrologTimeout or EpilogTimeout that is set; 0: none is.
int slurms_timeout(const std::string& conf, Stage stage);

// ProctrackType, "proctrack/linuxproc" for example; empty: there is none.
std::string slurms_tracking(const std::string& conf);

}  // namespace rdmaquota
