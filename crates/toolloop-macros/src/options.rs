//! [`Options`]: what stands in `#[tool(..)]`.

use std::time::Duration;

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{LitStr, Path, Result, parse_quote};

/// What stands in `#[tool(..)]`.
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) effect: Effect,
    pub(crate) timeout: Option<Duration>,
    /// The crate `toolloop`.
    pub(crate) krate: Path,
}

/// What running the tool twice would mean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    ReadOnly,
    Idempotent,
    Once,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let krate = parse_quote!(::toolloop);
        let mut options = Self { name: None, effect: Effect::Once, timeout: None, krate };
        syn::meta::parser(|option| options.add(&option)).parse2(tokens)?;
        Ok(options)
    }

    fn add(&mut self, option: &ParseNestedMeta<'_>) -> Result<()> {
        let is = |name| option.path.is_ident(name);
        if is("name") {
            let name: LitStr = option.value()?.parse()?;
            check_name(&name)?;
            self.name = Some(name.value());
        } else if is("read_only") {
            self.set_effect(Effect::ReadOnly, option)?;
        } else if is("idempotent") {
            self.set_effect(Effect::Idempotent, option)?;
        } else if is("timeout") {
            let timeout: LitStr = option.value()?.parse()?;
            self.timeout = Some(parse_duration(&timeout)?);
        } else if is("crate") {
            let path: LitStr = option.value()?.parse()?;
            self.krate = path.parse_with(Path::parse_mod_style)?;
        } else {
            return Err(option.error(
                "unknown option; there are name = \"..\", read_only, idempotent, timeout = \
                 \"30s\" and crate = \"..\"",
            ));
        }
        Ok(())
    }

    fn set_effect(&mut self, effect: Effect, option: &ParseNestedMeta<'_>) -> Result<()> {
        if self.effect != Effect::Once {
            return Err(option.error("read_only and idempotent exclude each other: take one"));
        }
        self.effect = effect;
        Ok(())
    }
}

/// The providers agree on these names.
fn check_name(name: &LitStr) -> Result<()> {
    let value = name.value();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match (1..=64).contains(&value.len()) && value.chars().all(legal) {
        true => Ok(()),
        false => Err(syn::Error::new(
            name.span(),
            "the name of a tool is 1 to 64 letters, digits, `_` or `-`: providers refuse others",
        )),
    }
}

fn parse_duration(text: &LitStr) -> Result<Duration> {
    let value = text.value();
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let millis = match unit.trim() {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let millis = millis.zip(number.parse::<u64>().ok()).and_then(|(unit, n)| n.checked_mul(unit));
    match millis {
        Some(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err(syn::Error::new(
            text.span(),
            "a timeout is a whole number above 0 with a unit: \"500ms\", \"30s\", \"5m\" or \"1h\"",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let parse = |text| {
            let text = LitStr::new(text, proc_macro2::Span::call_site());
            parse_duration(&text).ok()
        };
        assert_eq!(parse("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse("30 s"), Some(Duration::from_secs(30)));
        assert_eq!(parse("5m"), Some(Duration::from_secs(300)));
        for bad in ["", "30", "s", "0s", "1.5s", "-1s", "99999999999999999999h"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_are_those_that_providers_take() {
        assert!(Options::parse(quote::quote!(name = "get-weather_2")).is_ok());
        for bad in ["", "get weather", "wetter_für", &"x".repeat(65)] {
            assert!(Options::parse(quote::quote!(name = #bad)).is_err(), "{bad}");
        }
    }
}
