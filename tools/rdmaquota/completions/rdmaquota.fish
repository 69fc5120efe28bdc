# fish completion for rdmaquota: the words come from the program itself.

function __rdmaquota_candidates
    set -l before (commandline -opc)
    $before[1] __complete $before[2..-1] (commandline -ct) 2>/dev/null
end

# What follows -- is another program's command line.
function __rdmaquota_in_program
    contains -- -- (commandline -opc)
end

function __rdmaquota_program
    set -l before (commandline -opc)
    set -l first (math (contains -i -- -- $before) + 1)
    set -l words
    if test $first -le (count $before)
        set words (string escape -- $before[$first..-1])
    end
    complete -C (string join ' ' -- $words (commandline -ct))
end

complete -c rdmaquota -f
complete -c rdmaquota -n __rdmaquota_in_program -a '(__rdmaquota_program)'
complete -c rdmaquota -n 'not __rdmaquota_in_program' -a '(__rdmaquota_candidates)'
complete -c rdmaquota -n '__fish_seen_subcommand_from check reload; or __fish_prev_arg_in --dir --file' -F
