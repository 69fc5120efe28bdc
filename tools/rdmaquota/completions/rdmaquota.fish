# fish completion for rdmaquota: the words come from the program itself.

function __rdmaquota_candidates
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    $before[1] __complete $before[2..-1] "$current" 2>/dev/null
end

function __rdmaquota_in_program
    contains -- -- (commandline -opc)
end

# After --, another program is completed.
complete -c rdmaquota -n __rdmaquota_in_program -a '(__fish_complete_subcommand --fcs-skip=(math (contains -i -- -- (commandline -opc))))'
complete -c rdmaquota -n 'not __rdmaquota_in_program' -a '(__rdmaquota_candidates)'
