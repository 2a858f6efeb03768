//! `callward serve --check`: what would run, and every key that is not at its default.

use std::path::Path;
use std::process::ExitCode;

use callward::core::{AuditScope, redact};
use callward::telemetry::export::OtlpConfig;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::admin;
use crate::assemble;
use crate::commands::serve::DEFAULT_FILE;
use crate::config::{Config, Keys, ServerConfig, show_duration};
use crate::error::Outcome;
use crate::output::{Cell, Screen, Table};
use crate::telemetry;

#[derive(Serialize)]
struct Checked<'a> {
    ok: bool,
    listen: String,
    /// Where operators ask.
    admin: String,
    /// The largest time of an attempt, unless its tool states one.
    attempt_timeout: String,
    listing_timeout: String,
    /// Where spans and metrics are sent; absent if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    traces: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
    /// The keys that are not at their defaults, by section.
    #[serde(flatten)]
    changed: Map<String, Value>,
    servers: Vec<CheckedServer<'a>>,
}

#[derive(Serialize)]
struct CheckedServer<'a> {
    id: &'a str,
    set: &'a str,
    weight: u32,
    prefix: Option<&'a str>,
    target: String,
    /// The keys of its table that are not at their defaults.
    changed: Keys,
    /// Absent if the program of its command is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

/// Shows what would run. The file was checked on the way here.
///
/// # Errors
///
/// [`AppError`](crate::error::AppError) if the environment states no valid time or collector.
pub(crate) fn check(file: Option<&Path>, config: &Config, json: bool, screen: &Screen) -> Outcome {
    let timed = assemble::timed(config)?;
    let otlp = telemetry::otlp(&config.telemetry)?;
    let place = |url: fn(&OtlpConfig) -> Option<&str>| {
        let url = otlp.as_ref().and_then(url);
        url.map(|url| redact::url(&config.references.scrub(url)))
    };
    let attempt = timed.limits.attempt_timeout;
    let servers: Vec<_> = config
        .servers
        .iter()
        .map(|one| server(one, config))
        .collect();
    let checked = Checked {
        ok: servers.iter().all(|server| server.missing.is_none()),
        listen: config.http.listen.to_string(),
        admin: match &config.admin.listen {
            Some(address) => address.to_string(),
            None => format!("http://{}, or a free port if it is taken", admin::DEFAULT),
        },
        attempt_timeout: show_duration(attempt.unwrap_or(config.profile.attempt_timeout)),
        listing_timeout: show_duration(timed.listing_timeout),
        traces: place(OtlpConfig::traces_url),
        metrics: place(OtlpConfig::metrics_url),
        changed: config.changed(),
        servers,
    };
    if json {
        screen.json(&checked);
    } else {
        print(file, config, &checked, screen);
    }
    Ok(ExitCode::from(u8::from(!checked.ok)))
}

fn server<'a>(server: &'a ServerConfig, config: &Config) -> CheckedServer<'a> {
    let (table, references) = (&server.table, &config.references);
    let program = table.command.as_deref();
    CheckedServer {
        id: server.id.as_str(),
        set: server.set.as_str(),
        weight: table.weight,
        prefix: server.prefix.as_deref(),
        target: match program {
            Some(program) => {
                let args = table.args.iter().map(|arg| references.scrub(arg));
                redact::command(&references.scrub(program), args)
            }
            None => redact::url(&references.scrub(table.url.as_deref().unwrap_or_default())),
        },
        changed: config.changed_of(server),
        missing: program
            .filter(|program| which::which(program).is_err())
            .map(|program| format!("`{}` is not in PATH", references.scrub(program))),
    }
}

fn print(file: Option<&Path>, config: &Config, checked: &Checked<'_>, screen: &Screen) {
    match file {
        Some(file) => {
            let end = if checked.ok {
                "; it would run"
            } else {
                " in the file"
            };
            screen.heading(&format!("{}: no problems{end}", file.display()));
        }
        None => screen.heading(&format!(
            "no --config, and no {DEFAULT_FILE} in this folder: the embedded sample would run"
        )),
    }
    let line = |what: &str, text: &str| screen.out(format_args!("{what:<10} {text}"));
    line("endpoint", &format!("http://{}/mcp", checked.listen));
    line("admin", &checked.admin);
    let (attempt, listing) = (&checked.attempt_timeout, &checked.listing_timeout);
    let times = format!("attempts within {attempt} unless a tool states its time");
    line("limits", &times);
    line("listing", &format!("within {listing}"));
    line("recorded", &recorded(config));
    let telemetry = match (&checked.traces, &checked.metrics) {
        (None, None) => "nothing is sent to a collector".to_owned(),
        (traces, metrics) => {
            let of = |url: &Option<String>| url.clone().unwrap_or_else(|| "nowhere".to_owned());
            format!("spans to {}, metrics to {}", of(traces), of(metrics))
        }
    };
    line("telemetry", &telemetry);
    let mut servers = Table::new(&["server", "set", "weight", "prefix", "target"]);
    for one in &checked.servers {
        servers.row(vec![
            Cell::plain(one.id),
            Cell::plain(one.set),
            Cell::plain(one.weight),
            Cell::plain(one.prefix.unwrap_or("-")),
            Cell::plain(&one.target),
        ]);
    }
    screen.table(&servers);
    for (section, value) in &checked.changed {
        match value {
            Value::Object(keys) => keys.iter().for_each(|(key, value)| {
                screen.out(format_args!("{section}.{key} = {value}"));
            }),
            value => screen.out(format_args!("{section} = {value}")),
        }
    }
    for one in &checked.servers {
        for (key, value) in &one.changed {
            screen.out(format_args!("servers.{}.{key} = {value}", one.id));
        }
        if let Some(missing) = &one.missing {
            screen.warning(&format_args!("servers.{}.command: {missing}", one.id));
        }
    }
}

/// Describes which calls are written to the audit log.
fn recorded(config: &Config) -> String {
    let Some(path) = &config.audit.path else {
        return "no calls: `audit.path` is not set".into();
    };
    let calls = match config.profile.audit {
        AuditScope::All => "every call",
        AuditScope::Destructive => "destructive calls, and those whose hints ask for it",
        _ => "every call that is not read-only, and those whose hints ask for it",
    };
    let path = path.display().to_string();
    let path = config.references.scrub(&path);
    format!("{calls}, in {path}; those of open-world tools in `audit.open_world_path`")
}
