# fish completion for rdmaquotad.

complete -c rdmaquotad -l dir -r -F -d 'quota directory'
complete -c rdmaquotad -l version -d 'print the version'
complete -c rdmaquotad -l help -d 'print the options'
