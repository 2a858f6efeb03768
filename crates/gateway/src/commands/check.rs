//! `callward serve --check`: what would run, and every key that is not at its default.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use callward::core::{AuditScope, redact};
use callward::telemetry::export::OtlpConfig;
use callward_mcp::client::start_advice;
use serde_json::{Value, json};

use crate::commands::serve::DEFAULT_FILE;
use crate::commands::status::items;
use crate::config::{ADMIN, Config, Keys, ServerConfig, exposed, show_duration};
use crate::error::Outcome;
use crate::output;
use crate::table::{self, shown};
use crate::{admin, assemble, audit, telemetry, view};

/// Shows what would run. The file was checked on the way here.
///
/// # Errors
///
/// [`AppError`](crate::error::AppError) if the environment states no valid time or collector, or
/// the key of the audit log cannot be read.
pub(crate) fn check(file: Option<&Path>, config: &Config, json: bool) -> Outcome {
    let (limits, listing_timeout) = assemble::timed(config)?;
    let otlp = telemetry::otlp(&config.telemetry)?;
    let place = |url: fn(&OtlpConfig) -> Option<&str>| {
        let url = otlp.as_ref().and_then(url);
        url.map(|url| redact::url(&config.references.scrub(url)))
    };
    // the largest time of an attempt, unless its tool states one
    let profile = &config.profile;
    let attempt = limits.attempt_timeout.unwrap_or(profile.attempt_timeout);
    let servers = config.servers.iter().map(|one| server(one, config));
    let servers: Vec<_> = servers.collect();
    let ok = servers.iter().all(|server| server["missing"].is_null());
    if let (Some(_), Some(file)) = (&config.audit.path, &config.audit.key_file) {
        audit::read_key(file)?;
    }
    let warnings = warnings(config);
    let mut checked = view::with_values(json!({
        "ok": ok,
        "clients": clients(config),
        "listen": config.http.listen,
        "admin": match &config.admin.listen {
            Some(address) => address.to_string(),
            None => format!("http://{}, or a free port if it is taken", admin::DEFAULT),
        },
        "attempt_timeout": show_duration(attempt),
        "listing_timeout": show_duration(listing_timeout),
        // where spans and metrics are sent; absent if they are not
        "traces": place(OtlpConfig::traces_url),
        "metrics": place(OtlpConfig::metrics_url),
        "recorded": recorded(config),
        "servers": servers,
        "warnings": (!warnings.is_empty()).then_some(&warnings),
    }));
    let changed = config.changed();
    if json {
        for (section, keys) in changed {
            checked[section] = keys;
        }
        output::json(&checked);
    } else {
        print(file, &checked, &changed);
        warnings.iter().for_each(output::warning);
    }
    Ok(ExitCode::from(u8::from(!ok)))
}

/// Returns what in the file is probably a mistake, and what is dangerous.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let (mut warnings, http) = (config.warnings.clone(), &config.http);
    let is_exposed = |address: &SocketAddr| exposed(*address, ADMIN).is_some();
    let public = Some(http.listen).filter(is_exposed);
    let plain = public.filter(|_| config.identifies() && http.tls.tls_cert.is_none());
    let admin = config.admin.tcp().filter(is_exposed);
    for address in [plain, admin].into_iter().flatten() {
        warnings.push(format!(
            "{address} can be reached from other machines, and credentials pass it unencrypted: put \
             a proxy with TLS in front of it"
        ));
    }
    if let Some(address) = public.filter(|_| !config.identifies()) {
        warnings.push(format!(
            "`http.insecure` is set: {address} can be reached from other machines, and callers are \
             not authenticated"
        ));
    }
    if let Some(key) = http.tls.open_to_others() {
        let key = config.references.scrub(&key.display().to_string());
        warnings.push(format!(
            "every user of this machine may read the key {key} (`http.tls_key`)"
        ));
    }
    warnings
}

fn server(server: &ServerConfig, config: &Config) -> Value {
    let (table, references) = (&server.table, &config.references);
    let program = table.command.as_deref();
    let mut checked = json!({
        "id": server.id,
        "set": server.set,
        "weight": table.weight,
        "prefix": server.prefix,
        "target": match program {
            Some(program) => {
                let args = table.args.iter().map(|arg| references.scrub(arg));
                redact::command(&references.scrub(program), args)
            }
            None => redact::url(&references.scrub(table.url.as_deref().unwrap_or_default())),
        },
        // the keys of its table that are not at their defaults
        "changed": config.changed_of(server),
    });
    if let Some(program) = program.filter(|program| which::which(program).is_err()) {
        let (shown, advice) = (references.scrub(program), start_advice(program));
        checked["missing"] = format!("`{shown}` cannot be started: {advice}").into();
    }
    checked
}

fn print(file: Option<&Path>, checked: &Value, changed: &Keys) {
    match file {
        Some(file) => {
            let end = match checked["ok"] == true {
                true => "; it would run",
                false => " in the file",
            };
            output::heading(&format!("{}: no problems{end}", file.display()));
        }
        None => output::heading(&format!(
            "no --config, and no {DEFAULT_FILE} in this folder: the embedded sample would run"
        )),
    }
    let members = checked.as_object().into_iter().flatten();
    for (what, text) in members.filter_map(|(what, value)| Some((what, value.as_str()?))) {
        output::line(format_args!("{what:<15}  {text}"));
    }
    let servers = items(&checked["servers"]);
    let rows = servers.iter().copied();
    table::print("server=id set weight prefix target", rows);
    let show = |section: &str, keys: &Keys| {
        for (key, value) in keys {
            output::line(format_args!("{section}.{key} = {value}"));
        }
    };
    for (section, value) in changed {
        match value {
            Value::Object(keys) => show(section, keys),
            value => output::line(format_args!("{section} = {value}")),
        }
    }
    for one in &servers {
        let server = format!("servers.{}", shown("", &one["id"]));
        if let Value::Object(keys) = &one["changed"] {
            show(&server, keys);
        }
        if let Some(missing) = one["missing"].as_str() {
            output::warning(&format_args!("{server}.command: {missing}"));
        }
    }
}

/// Describes how clients are identified, in the order of precedence.
fn clients(config: &Config) -> String {
    let auth = &config.auth;
    let keys = auth.keys.is_on().then(|| "API keys".to_owned());
    let issuers = auth.issuers.iter();
    let proxy = auth.proxy.iter();
    let proxy = proxy.map(|one| format!("`{}` from {}", one.header, one.peers.join(", ")));
    let mut ways: Vec<_> = keys.into_iter().collect();
    ways.extend(issuers.map(|one| format!("tokens of {}", one.issuer)));
    ways.extend(proxy);
    ways.extend(config.http.tls.issuers());
    if ways.is_empty() {
        return "not identified: each is `anonymous`".into();
    }
    let text = format!("identified by {}", ways.join("; "));
    config.references.scrub(&text)
}

/// Describes which calls are written to the audit log.
fn recorded(config: &Config) -> String {
    let Some(path) = &config.audit.path else {
        return "no calls: `audit.path` is not set".into();
    };
    let calls = match config.profile.audit {
        AuditScope::All => "every call",
        AuditScope::Hinted => "calls whose hints ask for it",
        AuditScope::Destructive => "destructive calls, and those whose hints ask for it",
        _ => "every call that is not read-only, and those whose hints ask for it",
    };
    let shown = |path: &Path| config.references.scrub(&path.display().to_string());
    let (path, open_world) = (shown(path), config.audit.open_world_path.as_deref());
    let open_world = open_world.map_or_else(|| "`*.open-world.*` beside it".to_owned(), shown);
    format!("{calls}, in {path}; those of open-world tools in {open_world}")
}
