//! A server that lists the tools it is given, and answers every call with a number of its own.

use serde_json::Value;

/// Needs a shell only. Its first argument is the list of tools, as JSON without quotes of its own
/// kind (`'`); the n-th call is answered with `run n`.
const SCRIPT: &str = r#"
runs=0
while IFS= read -r line; do
  case $line in '{"jsonrpc":"2.0","id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}' ;;
    *'"method":"tools/list"'*) result="{\"tools\":$1}" ;;
    *'"method":"tools/call"'*)
      runs=$((runs + 1))
      result="{\"content\":[{\"type\":\"text\",\"text\":\"run $runs\"}]}" ;;
    *)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"
      continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Returns the command line of a server with these tools.
pub(crate) fn command(tools: &Value) -> [String; 5] {
    [
        "sh".into(),
        "-c".into(),
        SCRIPT.into(),
        "scripted".into(),
        tools.to_string(),
    ]
}

/// Returns the lines of a config that name such a server.
pub(crate) fn server(name: &str, tools: &Value) -> String {
    let [program, args @ ..] = command(tools);
    // what JSON writes as a list of strings, TOML reads as one
    let args = Value::from(args.to_vec());
    format!("[servers.{name}]\ncommand = {program:?}\nargs = {args}\n")
}
