#compdef rdmaquotad
# zsh completion for rdmaquotad.

_arguments '--dir[quota directory]:directory:_files -/' '--version[print the version]' '--help[print the options]'
