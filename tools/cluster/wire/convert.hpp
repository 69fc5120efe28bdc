// Between the wire's messages and those of the core.
#pragma once

#include "tools/cluster/core/ports.hpp"

namespace rdmaquota::cluster::wire {

class Word;
class Report;

void write(const ToNode& from, Word& to);
ToNode read(const Word& from);
void write(const FromNode& from, Report& to);
FromNode read(const Report& from);

}  // namespace rdmaquota::cluster::wire
