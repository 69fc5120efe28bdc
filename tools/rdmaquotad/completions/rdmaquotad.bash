# bash completion for rdmaquotad.

complete -o default -W "--dir --policy --version --help" rdmaquotad
