//! A server that needs a shell only: it lists the tools it is given, and answers calls as a script
//! says.

use serde_json::{Value, json};

/// Its arguments are the fields of [`Script`].
const SERVER: &str = include_str!("../golden/server.sh");

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
            call: "",
            argument: "",
        }
    }

    /// One tool that reads.
    pub(crate) fn of_one(name: &str) -> Self {
        Self::counting(&json!([tool(name, true)]))
    }

    /// Returns the command line of the server.
    pub(crate) fn command(&self) -> [String; 8] {
        let tools = self.tools.to_string();
        let args = [&*tools, self.each, self.call, self.argument];
        let [tools, each, call, argument] = args.map(str::to_owned);
        let [sh, c, script, name] = ["sh", "-c", SERVER, "scripted"].map(str::to_owned);
        [sh, c, script, name, tools, each, call, argument]
    }

    /// Returns the lines of a config that name the server; more of its keys may follow.
    pub(crate) fn server(&self, name: &str) -> String {
        let [program, args @ ..] = self.command();
        // what JSON writes as a list of strings, TOML reads as one
        let escaped = args.map(|arg| arg.replace('$', "$$"));
        let args = Value::from(escaped.to_vec());
        format!("[servers.{name}]\ncommand = {program:?}\nargs = {args}\n")
    }
}

/// Returns the definition of a tool that reads, or of one that is not safe to repeat.
pub(crate) fn tool(name: &str, reads: bool) -> Value {
    json!({
        "name": name, "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": reads, "destructiveHint": !reads},
    })
}
