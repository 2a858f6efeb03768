# An MCP server. Its arguments: the list of its tools, or a file with it; what runs at the start and
# before each request, where `$more` is added to the result of `initialize`, `$offers` to its
# capabilities, and `$answer` is the result of a method that has none here, or `$code` its error; what runs on
# each call,
# where `$line` is the request and `$runs` the number of calls with this one, and `says TEXT JSON`
# answers; and `$argument` of both. By default, the n-th call is answered with `run n`.
tools=$1 each=$2 call=${3:-'says "run $runs"'} argument=$4
[ ! -e "$tools" ] || tools=$(cat "$tools")
runs=0 more= offers= answer= code=-32601
says() { result="{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]$2}"; }
eval "$each"
while IFS= read -r line; do
  eval "$each"
  case $line in '{"jsonrpc":"2.0","id":'*) ;; *) continue ;; esac
  result=
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}'"$offers"'},"serverInfo":{"name":"scripted","version":"1"}'"$more}" ;;
    *'"method":"tools/list"'*) result="{\"tools\":$tools}" ;;
    *'"method":"tools/call"'*)
      runs=$((runs + 1))
      eval "$call" ;;
    *) result=$answer ;;
  esac
  case $result in
    '')
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"no such method"}}\n' "$id" "$code"
      continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
