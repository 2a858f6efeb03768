//! `callward keys`: creates, lists and revokes API keys, in the file that the gateway reads.

use std::process::ExitCode;
use std::time::SystemTime;

use callward_auth::keys::{KeyEntry, KeyFile, NewKey, Timestamp};
use callward_auth::rules::SCOPES;
use serde_json::{Value, json};

use crate::args::{CreateKey, Keys, KeysCommand};
use crate::auth::key_file;
use crate::commands::serve::default_file;
use crate::config::{Config, KeySource, Servers};
use crate::error::{AppError, Outcome};
use crate::state_dir::{StateDir, create_private};
use crate::{output, table};

const COLUMNS: &str = "id name state roles scopes created expires last_used";

pub(crate) async fn run(args: Keys, state: Option<&StateDir>) -> Outcome {
    let config = args.config.clone().or_else(default_file);
    let source = match &config {
        Some(path) => {
            let source = Config::load(path, Servers::Any)?.auth.keys;
            if !source.is_on() {
                output::warning(&format_args!(
                    "{}: `auth.keys` is not set: its gateway asks for no key",
                    path.display()
                ));
            }
            source
        }
        None => KeySource::default(),
    };
    let file = key_file(&source, state)?;
    super::on_a_thread(move || {
        let now = Timestamp::now().time();
        match args.command {
            KeysCommand::Create(new) => create(&file, new, args.json, now),
            KeysCommand::List => list(&file, args.json, now),
            KeysCommand::Revoke { key } => revoke(&file, &key, args.json, now),
        }
    })
    .await
}

fn create(file: &KeyFile, args: CreateKey, as_json: bool, now: SystemTime) -> Outcome {
    let end = |time| {
        now.checked_add(time)
            .ok_or_else(|| AppError::Usage("--expires: expected a shorter time".into()))
    };
    for scope in args
        .scopes
        .iter()
        .filter(|scope| !SCOPES.contains(&&***scope))
    {
        output::note(format_args!(
            "calls need the scopes {}: `{scope}` is for rules of `[[authorize]]` alone",
            SCOPES.join(", ")
        ));
    }
    let mut new = NewKey::default();
    new.name = args.name;
    new.roles = args.roles.into_iter().collect();
    new.scopes = (!args.scopes.is_empty()).then(|| args.scopes.into_iter().collect());
    new.expires = args.expires.map(end).transpose()?;
    if let Some(folder) = file.path().parent() {
        let what = format!("{} cannot be created", folder.display());
        create_private(folder).map_err(AppError::io(what))?;
    }
    let (secret, entry) = file.create(new, now)?;
    let mut shown = view(&entry, None, now);
    if as_json {
        shown["key"] = secret.expose().into();
        output::json(&shown);
    } else {
        output::line(secret.expose());
    }
    let until = entry.expires.map_or_else(
        || "until it is revoked".to_owned(),
        |end| format!("until {end}"),
    );
    output::note(format_args!(
        "key `{}`, id {}, is valid {until}; it is not shown again",
        entry.name, entry.id
    ));
    Ok(ExitCode::SUCCESS)
}

fn list(file: &KeyFile, as_json: bool, now: SystemTime) -> Outcome {
    let used = file.last_used();
    let keys = file.list()?;
    let rows = keys.iter().map(|key| view(key, used.get(&key.id), now));
    if as_json {
        rows.for_each(|row| output::json(&row));
    } else if keys.is_empty() {
        output::note(format_args!("{} has no keys", file.path().display()));
    } else {
        let rows: Vec<Value> = rows.collect();
        table::print(COLUMNS, &rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(file: &KeyFile, name: &str, as_json: bool, now: SystemTime) -> Outcome {
    let key = file.revoke(name, now)?;
    if as_json {
        output::json(&view(&key, file.last_used().get(&key.id), now));
    } else {
        output::note(format_args!(
            "key `{}`, id {}, is revoked",
            key.name, key.id
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes a key without its hash.
fn view(key: &KeyEntry, used: Option<&Timestamp>, now: SystemTime) -> Value {
    let state = match (key.revoked, key.expires) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if now >= end.time() => "expired",
        (None, _) => "valid",
    };
    json!({
        "id": key.id,
        "name": key.name,
        "state": state,
        "roles": key.roles,
        "scopes": key.scopes,
        "created": key.created,
        "expires": key.expires,
        "revoked": key.revoked,
        "last_used": used,
    })
}
