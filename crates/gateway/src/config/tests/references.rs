//! References: what they come to, what is wrong with them, and that nothing shows their values.

use std::ffi::OsString;

use serde_json::json;

use super::super::{Config, ConfigError, Servers};
use super::*;

fn parsed(text: &str) -> Result<Config, ConfigError> {
    let env = |name: &str| -> Option<OsString> {
        let value = match name {
            "TOKEN" => "hunter2",
            "PORT" => "80",
            "EMPTY" => "",
            _ => return None,
        };
        Some(value.into())
    };
    Config::parse_with(Path::new("folder/t.toml"), text, &env, Servers::Some)
}

/// Returns what an argument comes to.
fn argument(text: &str) -> String {
    let text = format!("[servers.a]\ncommand = \"x\"\nargs = ['{text}']");
    let config = parsed(&text).unwrap_or_else(|error| panic!("{error}"));
    config.servers[0].table.args[0].clone()
}

fn fault(text: &str) -> String {
    parsed(text).err().unwrap().to_string()
}

#[test]
fn a_reference_stands_for_its_value() {
    for (text, value) in [
        ("${env:TOKEN}", "hunter2"),
        ("--token=${env:TOKEN}:${env:PORT}", "--token=hunter2:80"),
        ("${env:ABSENT:-a:-b}", "a:-b"),
        ("${env:EMPTY:-b}", "b"),
        ("${env:EMPTY}", ""),
        ("${env:ABSENT:-}", ""),
        ("$$", "$"),
        ("$${HOME}", "${HOME}"),
        ("$$$${env:TOKEN}", "$${env:TOKEN}"),
        ("$$${env:TOKEN}", "$hunter2"),
        ("a $1 $HOME 5$", "a $1 $HOME 5$"),
    ] {
        assert_eq!(argument(text), value, "{text}");
    }
}

#[test]
fn every_string_of_the_file_may_have_references() {
    let config = parsed(
        "[http]\nlisten = \"127.0.0.1:${env:PORT}\"\nallowed_hosts = [\"${env:TOKEN}.example\"]\n\
         [servers.a]\nurl = \"http://h:${env:PORT}/mcp\"\n\
         headers = { authorization = \"Bearer ${env:TOKEN}\" }\n\
         [servers.b]\ncommand = \"${env:TOKEN}\"\nenv = { T = \"${env:TOKEN}\" }\n",
    )
    .unwrap();
    assert_eq!(config.http.listen.port(), 80);
    assert_eq!(config.http.allowed_hosts, ["hunter2.example"]);
    let [a, b] = &config.servers[..] else {
        panic!("two servers expected");
    };
    assert_eq!(a.table.url.as_deref(), Some("http://h:80/mcp"));
    assert_eq!(a.table.headers["authorization"], "Bearer hunter2");
    assert_eq!(b.table.command.as_deref(), Some("hunter2"));
    assert_eq!(b.table.env["T"], "hunter2");
}

#[test]
fn a_reference_that_leads_nowhere_is_a_problem_with_its_place() {
    let start = "[servers.a]\ncommand = \"x\"\nargs = [\"y\", ";
    for (text, said) in [
        ("${NAME}", "expected `${env:NAME}`"),
        ("${NAME}", "`$${NAME}` for the text itself"),
        ("${NAME:-b}", "expected `${env:NAME:-b}`"),
        ("${env:ABSENT}", "variable ABSENT is not set"),
        ("${env:9}", "name of a variable"),
        ("${env:TOKEN", "is not closed"),
        (
            "${vault:x}",
            "expected `${env:NAME}`, `${env:NAME:-default}`",
        ),
        ("${}", "expected `${env:NAME}`"),
        ("${file:absent}", "folder/absent cannot be read"),
    ] {
        let error = fault(&format!("{start}'{text}']"));
        let place = "folder/t.toml:3:14: `servers.a.args.2`: ";
        assert!(error.starts_with(place) && error.contains(said), "{error}");
    }
    // one for each, and none that follows from another
    let all =
        fault("[cach]\n[retry]\nmax_attempts = 'x'\n[servers.a]\nurl = '${A}'\nargs = ['${B}']");
    assert_eq!(all.lines().count(), 4, "{all}");
}

#[test]
fn a_file_is_read_beside_the_config_up_to_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content);
    write("token", b"hunter2 \r\n\n").unwrap();
    write("long", &vec![b'x'; 64 * 1024 + 1]).unwrap();
    write("odd", b"\xff").unwrap();
    let parsed = |name: &str| {
        let text = format!("[servers.a]\ncommand = '${{file:{name}}}'");
        Config::parse_with(
            &folder.path().join("t.toml"),
            &text,
            &|_| None,
            Servers::Some,
        )
    };
    let config = parsed("token").unwrap();
    assert_eq!(config.servers[0].table.command.as_deref(), Some("hunter2 "));
    for (name, said) in [
        ("long", "longer than 65536"),
        ("odd", "UTF-8"),
        (".", "read"),
    ] {
        let error = parsed(name).err().unwrap().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn problems_and_debug_output_do_not_show_values() {
    for text in [
        "call_deadline = '${env:TOKEN}'\n[servers.a]\ncommand = 'x'",
        "call_deadline = '${env:PORT}'\n[servers.a]\ncommand = 'x'",
        "[http]\nlisten = '${env:TOKEN}'\n[servers.a]\ncommand = 'x'",
        "[servers.a]\nurl = '${env:TOKEN}'",
        "[servers.a]\ncommand = 'x'\nmax_waiting = '${env:TOKEN}'",
        "[servers.a]\ncommand = 'x'\nset = 'a b ${env:TOKEN}'",
    ] {
        let error = fault(text);
        assert!(
            !error.contains("hunter2") && !error.contains("\"80\""),
            "{error}"
        );
    }
    let config = parsed(
        "[servers.a]\ncommand = 'x'\nargs = ['--x', '${env:TOKEN}']\nenv = { A = 's3cr3t' }\n\
         [servers.b]\nurl = 'http://u:s3cr3t@h/?k=s3cr3t'\nheaders = { x = 's3cr3t' }",
    );
    let servers = config.unwrap().servers;
    let tables: Vec<_> = servers.iter().map(|server| &server.table).collect();
    let shown = json!(tables).to_string();
    assert!(!shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn values_are_shown_as_the_references_they_came_from() {
    let config =
        parsed("[servers.a]\ncommand = 'x'\nargs = ['${env:TOKEN}', '--port=${env:PORT}']\n")
            .unwrap();
    for (text, shown) in [
        ("hunter2", "${env:TOKEN}"),
        ("at hunter2, port 80", "at ${env:TOKEN}, port 80"),
        ("80", "${env:PORT}"),
        ("--port=80", "--port=${env:PORT}"),
        ("nothing", "nothing"),
    ] {
        assert_eq!(config.references.scrub(text), shown);
    }
}
