// What slurm.conf says of the time that a prolog and an epilog may take.
#pragma once

#include <string>

namespace rdmaquota {

enum class Stage { prolog, epilog };

// The seconds after which Slurm ends it, and drains the node: the smallest of PrologEpilogTimeout and PrologTimeout or
// EpilogTimeout that is set; 0: none is. As Slurm does, takes keys in any case, the last value of each, and follows `Include
// FILE`, here from the directory of the file with that line.
int slurms_timeout(const std::string& conf, Stage stage);

}  // namespace rdmaquota
