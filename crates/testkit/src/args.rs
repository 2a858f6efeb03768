//! Command lines of the binaries and benches: `--json`, options with a value, and one file.

use std::path::Path;
use std::str::FromStr;

/// A parsed command line.
#[derive(Debug, Default)]
pub struct Args {
    json: bool,
    values: Vec<(String, String)>,
    file: Option<String>,
    usage: String,
}

impl Args {
    /// Parses a command line. `options` take a value.
    ///
    /// # Errors
    ///
    /// The problem, and `usage`.
    pub fn parse(
        mut args: impl Iterator<Item = String>,
        options: &[&str],
        usage: &str,
    ) -> Result<Self, String> {
        let mut parsed = Self {
            usage: usage.to_owned(),
            ..Self::default()
        };
        while let Some(arg) = args.next() {
            if arg == "--json" {
                parsed.json = true;
            } else if options.contains(&arg.as_str()) {
                let value = args
                    .next()
                    .ok_or_else(|| format!("{arg} needs a value\n{usage}"))?;
                parsed.values.push((arg, value));
            } else if arg.starts_with("--") || parsed.file.is_some() {
                return Err(format!("{arg:?} is not an option\n{usage}"));
            } else {
                parsed.file = Some(arg);
            }
        }
        Ok(parsed)
    }

    /// Returns `true` with `--json`.
    #[must_use]
    pub const fn json(&self) -> bool {
        self.json
    }

    /// Returns the last value of an option.
    #[must_use]
    pub fn value(&self, option: &str) -> Option<&str> {
        self.values
            .iter()
            .rev()
            .find_map(|(name, value)| (name == option).then_some(value.as_str()))
    }

    /// Returns the number that an option has, or `default`.
    ///
    /// # Errors
    ///
    /// The invalid number, and the usage.
    pub fn number<T: FromStr>(&self, option: &str, default: T) -> Result<T, String> {
        let Some(value) = self.value(option) else {
            return Ok(default);
        };
        let number = value.parse();
        number.map_err(|_| format!("{option} {value:?} is not a number\n{}", self.usage))
    }

    /// Reads the file. Where none is given, that is `shared` beside the checkout, or `own` in the
    /// data of this crate where there is none.
    ///
    /// # Errors
    ///
    /// The name of the file, and why it cannot be read.
    pub fn read(&self, shared: &str, own: &str) -> Result<(String, String), String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let shared = here.join("../../../shared").join(shared);
        let file = match &self.file {
            Some(file) => file.into(),
            None if shared.exists() => shared,
            None => here.join("data").join(own),
        };
        let text = std::fs::read_to_string(&file);
        let file = file.display().to_string();
        let text = text.map_err(|error| format!("{file}: {error}"))?;
        Ok((file, text))
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        let args = line.split_whitespace().map(str::to_owned);
        Args::parse(args, &["--rules"], "usage: x")
    }

    #[test]
    fn options_are_before_or_after_the_file() {
        for line in ["--json --rules a f", "f --rules a --json"] {
            let args = parse(line).unwrap();
            assert!(args.json());
            assert_eq!(args.value("--rules"), Some("a"));
            assert!(args.number("--rules", 1).unwrap_err().contains("usage"));
            assert_eq!(args.number("--other", 1), Ok(1));
            assert_eq!(args.file(), Some("f"));
        }
    }

    #[test]
    fn an_error_names_the_word() {
        for (line, named) in [("--jsn", "--jsn"), ("a b", "\"b\""), ("--rules", "--rules")] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(named) && error.contains("usage"), "{error}");
        }
    }
}
