//! [`Grep`]: the tool `grep`.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use cap_std::fs::File;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{EffectClass, ToolDefinition, ToolError, ToolFuture, ToolHandler};

use super::matches::Matches;
use super::walk::{Ignored, Walked, path_pattern, walk};
use crate::Root;
use crate::blocking::{Patience, on_thread};
use crate::output::counted;

/// Searches the text files under a [`Root`] for a regular expression, as ripgrep does.
///
/// Matches are grouped by file, in the order of their paths: the path on a line, then lines like
/// `12:text`, lines around a match like `11-text`, `--` between places. Binary files and what
/// `.gitignore` files leave out are passed over; links are not followed. 200 matches are shown at
/// once, and a last line says how to see the next ones.
#[derive(Debug, Clone)]
pub struct Grep {
    root: Root,
    time_limit: Duration,
}

impl Grep {
    /// Searches files under `root`, for 20 seconds at most.
    pub fn new(root: Root) -> Self {
        Self { root, time_limit: TIME_LIMIT }
    }

    /// After so long it stops and gives what it has found.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }
}

impl<Ctx> ToolHandler<Ctx> for Grep {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Searches the text files of the project for a regular expression, line by line. \
             Files that .gitignore names are left out.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        let Self { root, time_limit } = self.clone();
        on_thread(NAME, input, move |arguments, cut| {
            Search::new(&root, arguments, &Patience::new(cut, time_limit))?.run()
        })
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::ReadOnly
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The regular expression, in Rust's syntax; it matches within a line.
    pattern: String,
    /// The folder or file to search; default the project folder.
    path: Option<String>,
    /// Which files of the folder to search, such as *.rs or src/**/*.{js,ts}.
    glob: Option<String>,
    /// Whether pattern is text to look for as it is; default false.
    #[serde(default)]
    literal: bool,
    /// Whether upper and lower case are the same; default false.
    #[serde(default)]
    ignore_case: bool,
    /// How many lines to show before and after each match; default 0.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// Whether to give only the files and how many matches each has; default false.
    #[serde(default)]
    files_only: bool,
    /// Whether files that .gitignore names are searched; default false.
    #[serde(default)]
    include_ignored: bool,
    /// How many matches (or files, with files_only) to pass over; for the next part of a long
    /// result.
    #[serde(default)]
    offset: usize,
}

/// One search on its way.
struct Search<'a> {
    root: &'a Root,
    arguments: &'a Arguments,
    patience: &'a Patience<'a>,
    matcher: RegexMatcher,
    searcher: Searcher,
    matches: Matches,
    searched: usize,
    /// Files that could not be read.
    failed: usize,
}

impl<'a> Search<'a> {
    fn new(
        root: &'a Root,
        arguments: &'a Arguments,
        patience: &'a Patience<'a>,
    ) -> Result<Self, ToolError> {
        let matcher = RegexMatcherBuilder::new()
            .multi_line(true)
            .crlf(true)
            .fixed_strings(arguments.literal)
            .case_insensitive(arguments.ignore_case)
            .size_limit(MAX_PATTERN)
            .dfa_size_limit(MAX_PATTERN)
            .build(&arguments.pattern)
            .map_err(|error| bad_pattern(&arguments.pattern, &error))?;
        let context = arguments.context.min(MAX_CONTEXT);
        let searcher = SearcherBuilder::new()
            .line_terminator(grep_matcher::LineTerminator::crlf())
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_LINE))
            .build();
        let matches = Matches::new(arguments.files_only, arguments.offset);
        Ok(Self { root, arguments, patience, matcher, searcher, matches, searched: 0, failed: 0 })
    }

    fn run(mut self) -> Result<String, ToolError> {
        let path = self.arguments.path.as_deref().unwrap_or(".");
        if self.root.is_file(path) {
            let (file, _) = self.root.open_file(path)?;
            let ended = match self.file(Path::new(path), file) {
                ControlFlow::Continue(()) => Walked::Whole,
                ControlFlow::Break(()) if self.patience.is_over() => Walked::OutOfTime,
                ControlFlow::Break(()) => Walked::Stopped,
            };
            return Ok(self.report(ended));
        }
        let folder = self.root.folder(path)?;
        let wanted = self.arguments.glob.as_deref().map(path_pattern).transpose()?;
        let ignored = match self.arguments.include_ignored {
            true => Ignored::Included,
            false => Ignored::LeftOut,
        };
        let (root, patience) = (self.root, self.patience);
        let ended = walk(root, &folder, ignored, patience, |path| {
            let name = path.strip_prefix(&folder).unwrap_or(path);
            if wanted.as_ref().is_some_and(|wanted| !wanted.is_match(name)) {
                return ControlFlow::Continue(());
            }
            match path.to_str().map(|path| root.open_file(path)) {
                Some(Ok((file, _))) => self.file(path, file),
                _ => {
                    self.failed += 1;
                    ControlFlow::Continue(())
                }
            }
        });
        Ok(self.report(ended))
    }

    fn file(&mut self, path: &Path, file: File) -> ControlFlow<()> {
        let reader = Patient { file, patience: self.patience };
        let sink = self.matches.of_file(path, &self.matcher);
        let ended = self.searcher.search_reader(&self.matcher, reader, sink);
        if self.patience.is_over() {
            return ControlFlow::Break(());
        }
        self.searched += 1;
        self.failed += usize::from(ended.is_err());
        match self.matches.are_enough() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn report(self, ended: Walked) -> String {
        let files = counted(self.searched, "file");
        let (next, mut text) = self.matches.into_text();
        let mut notes = Vec::new();
        match ended {
            Walked::Stopped => notes.push(format!(
                "[there are more: go on with offset {next}, or narrow the search with path, glob \
                 or pattern]"
            )),
            Walked::OutOfTime => notes.push(format!(
                "[stopped for the time it took, after {files}: give a path or glob]"
            )),
            Walked::Whole if next > 0 && text.is_empty() => {
                notes.push(format!("[there are only {next}; offset is behind the last]"));
            }
            Walked::Whole if text.is_empty() => notes.push(format!("[no match in {files}]")),
            Walked::Whole => {}
        }
        if self.failed > 0 {
            let failed = counted(self.failed, "file");
            notes.push(format!("[{failed} could not be read, or had lines above 8 MiB]"));
        }
        text.push_str(&notes.join("\n"));
        text
    }
}

/// A file whose reader may lose patience.
struct Patient<'a> {
    file: File,
    patience: &'a Patience<'a>,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.patience.is_over() {
            true => Err(io::Error::other("out of time")),
            false => self.file.read(buffer),
        }
    }
}

fn bad_pattern(pattern: &str, error: &grep_regex::Error) -> ToolError {
    if pattern.contains('\n') || pattern.contains("\\n") {
        return ToolError::new(
            "A pattern matches within one line, so it cannot hold a line break. Search for the \
             first line, with context to see the next ones.",
        );
    }
    let error = error.to_string();
    if error.contains("size limit") {
        return ToolError::new(format!(
            "`{pattern}` stands for too many texts. Repeat less in it."
        ));
    }
    // The last line says what is wrong, those above draw an arrow to it.
    let fault = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
    ToolError::new(format!(
        "`{pattern}` is no regular expression: {fault}. Set literal: true to look for it as it is."
    ))
}

const NAME: &str = "grep";
const MAX_CONTEXT: usize = 20;
/// Bytes that a compiled pattern may take. It is compiled before there is a time limit, so that
/// a bomb such as `(a{1000}){1000}` must not get far.
const MAX_PATTERN: usize = 4 * 1024 * 1024;
/// Of memory for a line; a file with a longer one is told as not searched.
const MAX_LINE: usize = 8 * 1024 * 1024;
const TIME_LIMIT: Duration = Duration::from_secs(20);
