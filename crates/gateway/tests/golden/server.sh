# An MCP server with the tools in this file; the n-th call is answered with `run n`.
tools=$(cat "$1")
runs=0
while IFS= read -r line; do
  case $line in '{"jsonrpc":"2.0","id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}' ;;
    *'"method":"tools/list"'*) result="{\"tools\":$tools}" ;;
    *'"method":"tools/call"'*)
      runs=$((runs + 1))
      result="{\"content\":[{\"type\":\"text\",\"text\":\"run $runs\"}]}" ;;
    *)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"
      continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
