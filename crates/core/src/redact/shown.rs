//! Command lines and URLs for display: in checks, logs, errors and `Debug` output.

use std::borrow::Cow;

use super::Redactor;
use super::known::HIDDEN;
use super::names::secret_at;

/// A run of letters and digits from this length on looks like a secret if it holds both.
const LEAST_MIXED: usize = 16;
/// One of letters only does from this length on, if upper and lower case change often.
const LEAST_LETTERS: usize = 20;
/// The length of a UUID as text.
const UUID: usize = 36;

/// Prefixes of the keys of well-known services, which may be too short or too regular to look
/// random.
const KEYS: &str = "sk- ghp_ gho_ github_pat_ glpat- xoxb- xoxp-";

/// Last words of names that stand before secrets on command lines and in environments, beside
/// [`Redactor::DEFAULT_NAMES`].
const LAST_WORDS: [&str; 6] = ["auth", "dsn", "key", "pat", "pw", "sig"];

/// Returns a URL without its secrets: user and password, the values of the query, the fragment, and
/// pieces of the path that look random.
///
/// A text that is not a URL is treated like an argument of a command.
///
/// ```
/// use callward_core::redact::url;
///
/// assert_eq!(
///     url("https://ada:hunter2@mcp.example:8443/mcp?key=k3y&v=2"),
///     "https://[redacted]@mcp.example:8443/mcp?key=[redacted]&v=[redacted]"
/// );
/// assert_eq!(url("http://localhost:3000/mcp"), "http://localhost:3000/mcp");
/// ```
pub fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Shown::default().argument(text).into_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    // a password with a slash in it: what comes before the `@` is not a host
    if !has_port_or_none(authority) && rest.contains('@') {
        return format!("{scheme}://{HIDDEN}");
    }
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, _)) => (rest, format!("#{HIDDEN}")),
        None => (rest, String::new()),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, format!("?{}", without_values(query))),
        None => (rest, String::new()),
    };
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => authority.to_owned(),
    };
    let path = without_random(path);
    format!("{scheme}://{authority}{path}{query}{fragment}")
}

/// Returns a command line without the secrets in its arguments: what follows the name of a secret
/// (`--token=…`, `--api-key …`, `API_KEY=…`), what follows `-p` unless it looks like a port, a path
/// or a package, credentials (`Bearer …`), long random texts, and what [`url`] leaves out of URLs.
///
/// A secret that looks like a common word cannot be recognized.
///
/// ```
/// use callward_core::redact::command;
///
/// let args = ["-y", "@acme/server", "--api-key", "hunter2", "--root=/srv", "TOKEN=abc"];
/// assert_eq!(
///     command("npx", args),
///     "npx -y @acme/server --api-key [redacted] --root=/srv TOKEN=[redacted]"
/// );
/// ```
pub fn command<A: AsRef<str>>(program: &str, args: impl IntoIterator<Item = A>) -> String {
    let mut line = without_random(program).into_owned();
    let mut shown = ShownArgs::default();
    for arg in args {
        line.push(' ');
        line.push_str(&shown.next(arg.as_ref()));
    }
    line
}

/// Returns what may be a secret among the arguments and the variables of a process, as names and
/// values: what [`command`] hides of an argument, a URL whole, of which [`Lines`](super::Lines)
/// finds the password, and the values of variables that are named like a secret.
pub fn secrets_of_process<A: AsRef<str>>(
    args: impl IntoIterator<Item = A>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Vec<String> {
    let variables = variables.into_iter();
    let named = variables.filter_map(|(name, value)| is_secret_name(&name).then_some(value));
    let mut shown = ShownArgs::default();
    let secret = |arg: A| {
        let arg = arg.as_ref();
        let shown = shown.next(arg);
        let (before, _) = shown.split_once(HIDDEN)?;
        let secret = match arg.contains("://") {
            true => arg,
            false => arg.strip_prefix(before)?,
        };
        Some(secret.to_owned())
    };
    args.into_iter().filter_map(secret).chain(named).collect()
}

/// Returns `true` if the value of a variable of the environment may be a secret, by the variable's
/// name.
fn is_secret_name(name: &str) -> bool {
    // the working directory is not a secret, and messages are full of paths in it, as in that of
    // `OLDPWD`, which is one word. A text that says `PWD=` itself loses what follows: that may be a
    // connection string
    name != "PWD" && Shown::default().is_secret(name)
}

/// Shows arguments in order: a flag may mark the next one as a secret.
#[derive(Default)]
struct ShownArgs {
    shown: Shown,
    hides_next: bool,
    after_p: bool,
}

impl ShownArgs {
    fn next<'a>(&mut self, arg: &'a str) -> Cow<'a, str> {
        let is_flag = arg.starts_with('-') && arg.len() > 1;
        let is_hidden =
            self.hides_next && !arg.starts_with("--") || self.after_p && may_be_password(arg);
        self.hides_next = is_flag && !arg.contains('=') && self.shown.is_secret(arg);
        self.after_p = arg == "-p";
        match is_hidden {
            true => HIDDEN.into(),
            false => self.shown.argument(arg),
        }
    }
}

/// Returns `true` if what follows `-p` may be a password: not a port, a path, a package or another
/// flag.
fn may_be_password(arg: &str) -> bool {
    let is_port = arg
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | ':'));
    let is_package = arg.starts_with('@') && arg.contains('/');
    !is_port && !is_package && !arg.starts_with(['-', '/', '.', '~'])
}

/// The signs of secrets on a command line.
#[derive(Debug, Default)]
pub(super) struct Shown(Redactor);

impl Shown {
    /// Returns where the first secret of a line of text begins.
    pub(super) fn secret_at(&self, line: &str) -> Option<usize> {
        let in_quotes =
            |name: &str| self.is_secret(name.trim_end_matches(|c: char| !c.is_alphanumeric()));
        secret_at(line, in_quotes)
    }

    /// Returns `true` if a name, with the dashes before it, stands before a secret.
    pub(super) fn is_secret(&self, name: &str) -> bool {
        let last = name.rsplit(|c: char| !c.is_alphanumeric()).next();
        self.0.names.holds(name)
            || last.is_some_and(|last| LAST_WORDS.iter().any(|own| last.eq_ignore_ascii_case(own)))
    }

    fn argument<'a>(&self, arg: &'a str) -> Cow<'a, str> {
        if matches!(arg.trim_start().as_bytes().first(), Some(b'{' | b'[')) {
            return self.0.redact(arg.as_bytes()).into();
        }
        if let Some((name, value)) = arg.split_once('=')
            && is_name(name)
        {
            if value.is_empty() {
                return arg.into();
            }
            return match self.is_secret(name) {
                true => format!("{name}={HIDDEN}").into(),
                false => format!("{name}={}", self.argument(value)).into(),
            };
        }
        if is_url(arg) {
            return url(arg).into();
        }
        if self.0.names.are_in(arg) {
            return HIDDEN.into();
        }
        without_random(arg)
    }
}

/// Returns `true` if a text is the name in `name=value`, and not a part of something else.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.chars().all(is_part)
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        !scheme.is_empty() && scheme.chars().all(is_part)
    })
}

fn has_port_or_none(authority: &str) -> bool {
    authority
        .rsplit_once(':')
        .is_none_or(|(_, port)| port.ends_with(']') || port.bytes().all(|b| b.is_ascii_digit()))
}

fn without_values(query: &str) -> String {
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => HIDDEN.to_owned(),
    };
    query.split('&').map(pair).collect::<Vec<_>>().join("&")
}

/// Leaves out a text that looks random; of a path, the pieces that do.
pub(super) fn without_random(text: &str) -> Cow<'_, str> {
    if !text.split('/').any(is_random) {
        return text.into();
    }
    if !text.starts_with(['/', '.', '~']) {
        return HIDDEN.into();
    }
    let piece = |piece| if is_random(piece) { HIDDEN } else { piece };
    let pieces: Vec<_> = text.split('/').map(piece).collect();
    pieces.join("/").into()
}

fn is_random(text: &str) -> bool {
    let is_uuid = text.len() == UUID
        && text.split('-').count() == 5
        && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    is_uuid
        || is_key(text)
        || text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|run| is_mixed(run) || is_scrambled(run))
}

fn is_key(text: &str) -> bool {
    let bare = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    KEYS.split(' ')
        .any(|key| bare.len() > key.len() && bare.starts_with(key))
}

fn is_mixed(run: &str) -> bool {
    let has = |is: fn(&u8) -> bool| run.as_bytes().iter().any(is);
    run.len() >= LEAST_MIXED && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

fn is_scrambled(run: &str) -> bool {
    let bytes = run.as_bytes();
    let differ = |pair: &[u8]| match pair {
        [a, b] => a.is_ascii_uppercase() != b.is_ascii_uppercase(),
        _ => false,
    };
    let changes = bytes.windows(2).filter(|pair| differ(pair)).count();
    bytes.len() >= LEAST_LETTERS && changes * 4 >= bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(args: &str) -> String {
        command("npx", args.split('|'))
    }

    #[test]
    fn secrets_on_a_command_line_are_left_out() {
        let rows = r#"
--token=s3cr3t => --token=[redacted]
--api-key|s3cr3t => --api-key [redacted]
--license-key|s3cr3t => --license-key [redacted]
--token|-s3cr3t => --token [redacted]
--password|pw => --password [redacted]
-u|ada|-p|pw => -u ada -p [redacted]
-H|Authorization: Bearer x => -H [redacted]
-e|GITHUB_PAT=s3cr3t => -e GITHUB_PAT=[redacted]
DB_PASSWORD=s3cr3t => DB_PASSWORD=[redacted]
--header|Authorization: Bearer s3cr3t => --header [redacted]
--header=X-Api-Key: s3cr3t => --header=[redacted]
Bearer s3cr3t => [redacted]
sk-proj-4f9Kq2LmZx81Bv7Tt0Ye => [redacted]
eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln => [redacted]
550e8400-e29b-41d4-a716-446655440000 => [redacted]
AbCdEfGhIjKlMnOpQrStUvWx => [redacted]
postgresql://ada:s3cr3t@db:5432/shop => postgresql://[redacted]@db:5432/shop
--url=https://a.example/mcp?token=s3cr3t => --url=https://a.example/mcp?token=[redacted]
{"token":"s3cr3t","n":1} => {"token":"[redacted]","n":1}
/data/0f1e2d3c4b5a69788796a5b4c3d2e1f0/x => /data/[redacted]/x"#;
        for (args, hidden) in rows.lines().filter_map(|row| row.split_once(" => ")) {
            assert_eq!(shown(args), format!("npx {hidden}"));
        }
    }

    #[test]
    fn secrets_of_a_process_are_known_by_their_names() {
        let args = "-y|--token=s3cr3t|--api-key|k3y|db://u:pw@h/x|plain".split('|');
        let variables = [("DB_PASS", "v4r"), ("LANG", "C")].map(|(a, b)| (a.into(), b.into()));
        let secrets = secrets_of_process(args, variables);
        assert_eq!(secrets, ["s3cr3t", "k3y", "db://u:pw@h/x", "v4r"]);
        for name in ["MYSQL_PWD", "DB_PASS", "pwd"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PWD", "OLDPWD", "PASSENGER_ROOT"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn usual_arguments_are_shown_as_they_are() {
        for args in [
            "-y|@modelcontextprotocol/server-filesystem@2026.8.31|/srv/data",
            "mcp-server-git|--repository|/home/ada/src/project",
            "mcp-server-time|--local-timezone=Europe/Berlin",
            "-m|mcp_server_sequential_thinking|--verbose",
            "--api-key|--verbose",
            "-p|8080",
            "-p|127.0.0.1:8080:80|-p|--verbose",
            "-p|./project|-p|@acme/server",
            "-p",
            "--since|2026-11-22T14:00:00.000001Z|--token=",
            "http://localhost:3000/mcp|",
        ] {
            assert_eq!(shown(args), format!("npx {}", args.replace('|', " ")));
        }
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        let rows = "
https://s3cr3t@a.example/ => https://[redacted]@a.example/
http://a.ex/s/Zm9vYmFyYmF6cXV4MTIz/x => http://a.ex/s/[redacted]/x
https://a.ex?s3cr3t#s3cr3t => https://a.ex?[redacted]#[redacted]
https://u:p@ss@h/ => https://[redacted]@h/
https://u:p/ss@h/ => https://[redacted]
http://[::1]:7420/mcp => http://[::1]:7420/mcp
not a url => not a url";
        for (text, hidden) in rows.lines().filter_map(|row| row.split_once(" => ")) {
            assert_eq!(url(text), hidden);
        }
    }
}
