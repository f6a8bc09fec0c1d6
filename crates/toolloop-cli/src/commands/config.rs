//! `toolloop config`: what a run here would use, each value with where it came from.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap::FromArgMatches;
use pulldown_cmark::Alignment;

use crate::args::{Cli, Command, Yes};
use crate::exit::Exit;
use crate::folder;
use crate::grants::Grants;
use crate::model::{Choice, choose};
use crate::origin::{Origin, Sourced, short_path};
use crate::plan::DEFAULT_ITERATIONS;
use crate::report::Report;
use crate::settings::{Environment, Settings};
use crate::terminal::paint::{Paint, Style, has_colours};
use crate::terminal::screen::Size;
use crate::terminal::table::layout;
use crate::terminal::text::{Span, clean};

/// Runs the command. In a terminal it is a table, elsewhere name, value and origin by tabs.
pub(crate) async fn run() -> anyhow::Result<Exit> {
    let environment = Environment::of_process();
    let settings = settings(&environment)?;
    let rows = rows(&settings, &environment, &folder::open(None)?)?;
    let stdout = io::stdout();
    let page = match stdout.is_terminal() {
        true => table(&rows, environment.config_file().as_deref(), Paint::new(has_colours())),
        false => rows.iter().map(|row| row.0.join("\t") + "\n").collect(),
    };
    match stdout.lock().write_all(page.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::Answered),
    }
}

/// The settings of a run without flags.
pub(crate) fn settings(environment: &Environment<'_>) -> Result<Settings, Report> {
    let wrong = |error: clap::Error| Report::usage(error.to_string());
    let matches = Cli::of_environment().try_get_matches_from(["toolloop", "run"]).map_err(wrong)?;
    let cli = Cli::from_arg_matches(&matches).map_err(wrong)?;
    match (&cli.command, matches.subcommand()) {
        (Command::Run(args), Some((_, matches))) => Settings::of_run(args, matches, environment),
        _ => Ok(Settings::default()),
    }
}

/// Name, value and origin of a setting.
struct Row([String; 3]);

impl Row {
    fn new(name: &str, value: impl ToString, origin: impl ToString) -> Self {
        let cells = [name.to_owned(), value.to_string(), origin.to_string()];
        Self(cells.map(|cell| clean(&cell).replace(['\n', '\t'], " ")))
    }

    fn of<T>(
        name: &str,
        setting: Option<&Sourced<T>>,
        show: impl Fn(&T) -> String,
        usual: &str,
    ) -> Self {
        match setting {
            Some(setting) => Self::new(name, show(&setting.value), &setting.origin),
            None => Self::new(name, usual, Origin::Default),
        }
    }
}

fn rows(
    settings: &Settings,
    environment: &Environment<'_>,
    folder: &Path,
) -> Result<Vec<Row>, Report> {
    let mut rows = vec![
        Row::of("model", settings.model.as_ref(), String::clone, "the first with a key, or local"),
        Row::of("base_url", settings.base_url.as_ref(), String::clone, "the provider's"),
        Row::of("tools", settings.tools.as_ref(), |tools| list(tools, "none"), "all"),
        Row::of("system", settings.system.as_ref(), String::clone, "built in"),
        Row::of("dialect", settings.dialect.as_ref(), |dialect| dialect.name().to_owned(), "auto"),
        Row::of("one_tool", settings.one_tool.as_ref(), bool::to_string, "where calls are text"),
        Row::of(
            "max_iterations",
            settings.max_iterations.as_ref(),
            u32::to_string,
            &DEFAULT_ITERATIONS.to_string(),
        ),
        Row::of("timeout", settings.timeout.as_ref(), |limit| format!("{limit:?}"), "none"),
        Row::of("yes", settings.yes.as_ref(), yes, "ask"),
        Row::of("sandbox", settings.sandbox.as_ref(), |mode| mode.name().to_owned(), "strict"),
        Row::of("writable", settings.writable.as_ref(), |paths| list(paths, "none"), "none"),
    ];
    for (list, rules) in [
        ("approvals.deny", &settings.approvals.deny),
        ("approvals.ask", &settings.approvals.ask),
        ("approvals.allow", &settings.approvals.allow),
    ] {
        rows.extend(rules.iter().map(|rule| Row::new(list, &rule.value, &rule.origin)));
    }
    if let Some(file) = environment.grants_file() {
        let origin = short_path(&file);
        let grants = Grants::load(Some(file), folder)?;
        rows.extend(grants.rules().iter().map(|rule| Row::new("always allowed", rule, &origin)));
    }
    if let Choice::Target(target) = choose(settings, environment)? {
        rows.push(Row::new("a run takes", target.name(), ""));
        rows.push(Row::new("at", &target.base_url.value, &target.base_url.origin));
        if let Some(key) = &target.key {
            // Where it is, never what it is.
            rows.push(Row::new("with the key", "(not shown)", &key.origin));
        }
    }
    for (model, price) in &settings.prices {
        let price = format!("${} in, ${} out", price.input, price.output);
        rows.push(Row::new(&format!("prices.{model}"), price, "a settings file"));
    }
    Ok(rows)
}

fn yes(yes: &Yes) -> String {
    match yes {
        Yes::All => "all".to_owned(),
        Yes::Tools(tools) => list(tools, "none"),
    }
}

fn list(names: &[String], empty: &str) -> String {
    match names {
        [] => empty.to_owned(),
        names => names.join(","),
    }
}

fn table(rows: &[Row], file: Option<&Path>, paint: Paint) -> String {
    let head = Row(["setting", "value", "from"].map(str::to_owned));
    let cells = |row: &Row| {
        let [name, value, origin] = &row.0;
        let span = |text: &str, style| vec![Span::new(text, style)];
        vec![span(name, Style::PLAIN), span(value, Style::BOLD), span(origin, Style::DIM)]
    };
    let rows: Vec<_> = std::iter::once(&head).chain(rows).map(cells).collect();
    let lines = layout(&rows, &[Alignment::Left; 3], Size::of_process().columns, paint);
    let person = file.map_or_else(String::new, |file| format!(" and {}", short_path(file)));
    lines.join("\n") + &paint.dim(&format!("\n\nSettings are in ./toolloop.toml{person}.\n"))
}
