# bash completion for rdmaquotad.

complete -o default -W "--dir --version --help" rdmaquotad
