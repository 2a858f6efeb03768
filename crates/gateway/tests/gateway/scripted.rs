//! A server that needs a shell only: it lists the tools it is given, and answers calls as it is
//! reported.

use serde_json::{Value, json};

/// Its arguments are the fields of [`Script`].
const SERVER: &str = r#"
tools=$1 each=$2 call=$3 argument=$4
runs=0 more=
says() { result="{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]$2}"; }
eval "$each"
while IFS= read -r line; do
  eval "$each"
  case $line in '{"jsonrpc":"2.0","id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}'"$more}" ;;
    *'"method":"tools/list"'*) result="{\"tools\":$tools}" ;;
    *'"method":"tools/call"'*)
      runs=$((runs + 1))
      eval "$call" ;;
    *)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"
      continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// What such a server does.
pub(crate) struct Script<'a> {
    /// The list of tools.
    pub(crate) tools: Value,
    /// Runs at the start and before each request. `$more` is added to the result of `initialize`.
    pub(crate) each: &'a str,
    /// Runs on each call: `$line` is the request, `$runs` the number of calls with this one, and
    /// `says TEXT` answers; with more JSON as its second argument, the result has that too.
    pub(crate) call: &'a str,
    /// `$argument` of both.
    pub(crate) argument: &'a str,
}

impl Script<'_> {
    /// The n-th call is answered with `run n`.
    pub(crate) fn counting(tools: &Value) -> Self {
        Self {
            tools: tools.clone(),
            each: "",
            call: "says \"run $runs\"",
            argument: "",
        }
    }

    /// One tool that reads.
    pub(crate) fn of_one(tool: &str) -> Self {
        Self::counting(&json!([{
            "name": tool,
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true},
        }]))
    }

    /// Returns the command line of the server.
    pub(crate) fn command(&self) -> [String; 8] {
        let tools = self.tools.to_string();
        let fixed = ["sh", "-c", SERVER, "scripted"];
        let [sh, c, script, name] = fixed.map(str::to_owned);
        let [each, call, argument] = [self.each, self.call, self.argument].map(str::to_owned);
        [sh, c, script, name, tools, each, call, argument]
    }

    /// Returns the lines of a config that name the server.
    pub(crate) fn server(&self, name: &str) -> String {
        let [program, args @ ..] = self.command();
        // what JSON writes as a list of strings, TOML reads as one
        let escaped = args.map(|arg| arg.replace('$', "$$"));
        let args = Value::from(escaped.to_vec());
        format!("[servers.{name}]\ncommand = {program:?}\nargs = {args}\n")
    }
}

/// Returns the lines of a config that name such a server.
pub(crate) fn server(name: &str, tools: &Value) -> String {
    Script::counting(tools).server(name)
}
