//! References: what they come to, what is wrong with them, and that nothing shows their values.

use serde_json::json;

use super::super::tests::parse;
use super::super::{Config, Servers};

/// Returns what an argument comes to.
fn argument(text: &str) -> String {
    let text = format!("[servers.a]\ncommand = \"x\"\nargs = ['{text}']");
    let config = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    config.servers[0].table.args[0].clone()
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
        let error = parse(text).err().unwrap().to_string();
        assert!(
            !error.contains("hunter2") && !error.contains("\"80\""),
            "{error}"
        );
    }
    let config = parse(
        "[servers.a]\ncommand = 'x'\nargs = ['--x', '${env:TOKEN}']\nenv = { A = 's3cr3t' }\n\
         [servers.b]\nurl = 'http://u:s3cr3t@h/?k=s3cr3t'\nheaders = { x = 's3cr3t' }\n\
         [telemetry]\notlp_headers = { key = 's3cr3t' }",
    )
    .unwrap();
    let tables = config.servers.iter().map(|server| json!(server.table));
    let shown = json!([
        config.telemetry,
        config.changed(),
        tables.collect::<Vec<_>>()
    ])
    .to_string();
    assert!(
        shown.contains("key") && !shown.contains("s3cr3t"),
        "{shown}"
    );
}

#[test]
fn values_are_shown_as_the_references_they_came_from() {
    let config = parse(
        "[http]\nlisten = '127.0.0.1:${env:PORT}'\n[servers.a]\ncommand = 'x'\n\
         args = ['${env:TOKEN}', '--port=${env:PORT}']\nenv = { T = '${env:TOKEN}' }\n",
    )
    .unwrap();
    assert_eq!(config.http.listen.port(), 80);
    assert_eq!(config.servers[0].table.env["T"], "hunter2");
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
