//! [`Listing`]: the names in the text that a tool listed a folder with.

/// The files and folders of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) files: Vec<String>,
    /// With the slash behind them.
    pub(super) folders: Vec<String>,
    /// Whether the listing says that it leaves entries out.
    pub(super) cut: bool,
}

impl Listing {
    /// Takes what is surely a name: one entry a line, folders end with `/`, and a size or another
    /// remark may follow after two spaces. Titles and remarks on lines of their own are none.
    pub(super) fn parse(text: &str) -> Self {
        let mut listing = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if is_remark(line) {
                listing.cut |= line.contains("more");
                continue;
            }
            let has_column = line.contains("  ") || line.contains('\t');
            let name = line.split("  ").next().unwrap_or_default();
            let name = name.split('\t').next().unwrap_or_default();
            let name = name.split(" -> ").next().unwrap_or_default();
            let name = name.strip_prefix("./").unwrap_or(name);
            let title = at == 0 && !has_column && (line.ends_with(':') || is_prose(line));
            if title || name.is_empty() || name == "." {
                continue;
            }
            match name.strip_suffix('/') {
                // What lies deeper belongs to a folder that is listed itself.
                Some(folder) if folder.contains('/') => {}
                Some(_) => listing.folders.push(name.to_owned()),
                None if name.contains('/') => {}
                None => listing.files.push(name.to_owned()),
            }
        }
        listing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty()
    }

    /// The files that tell most about the folder, at most two.
    pub(super) fn telling(&self) -> Vec<&str> {
        let mut files: Vec<&str> = self
            .files
            .iter()
            .map(String::as_str)
            .filter(|name| is_text(name) && !is_private(name))
            .collect();
        // Stable, so equally telling ones stay in the order of the listing.
        files.sort_by_key(|name| rank(name));
        files.truncate(2);
        files
    }
}

/// Whether the name is one of a text file.
pub(super) fn is_text(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or_default().to_lowercase();
    match name.rsplit_once('.') {
        Some((stem, ending)) => !stem.is_empty() && TEXT_ENDINGS.contains(&ending),
        None => PLAIN_NAMES.contains(&name.as_str()),
    }
}

fn is_remark(line: &str) -> bool {
    line.is_empty()
        || line.starts_with('[') && line.ends_with(']')
        || line.starts_with('(') && line.ends_with(')')
        || line.starts_with("...")
        || line.starts_with('…')
}

/// Several words without an ending are a sentence, not a name.
fn is_prose(line: &str) -> bool {
    line.contains(' ') && !line.ends_with('/') && !is_text(line)
}

/// Names that may hold what is nobody's business.
fn is_private(name: &str) -> bool {
    let name = name.to_lowercase();
    name.starts_with('.')
        || ["secret", "password", "credential", "token"].iter().any(|word| name.contains(word))
}

/// The smaller, the more telling.
fn rank(name: &str) -> usize {
    let name = name.to_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    if stem == "readme" {
        0
    } else if MANIFESTS.contains(&name.as_str()) {
        1
    } else if ["main", "index", "lib", "app"].contains(&stem) {
        2
    } else if ["md", "rst", "adoc", "txt"].contains(&ending) {
        3
    } else if PLAIN_NAMES.contains(&name.as_str()) {
        5
    } else {
        4
    }
}

const MANIFESTS: [&str; 9] = [
    "cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "gemfile",
    "composer.json",
    "cmakelists.txt",
];
const PLAIN_NAMES: [&str; 7] =
    ["readme", "makefile", "dockerfile", "gemfile", "license", "changelog", "notes"];
const TEXT_ENDINGS: [&str; 50] = [
    "adoc", "bat", "c", "cc", "cfg", "cpp", "cs", "css", "csv", "ex", "go", "gradle", "h", "hpp",
    "hs", "html", "ini", "java", "js", "json", "jsx", "kt", "lua", "md", "mjs", "ml", "mod", "php",
    "pl", "py", "r", "rb", "rs", "rst", "scala", "sh", "sql", "svelte", "swift", "tex", "toml",
    "ts", "tsx", "txt", "vue", "xml", "yaml", "yml", "zig", "log",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_are_told_from_sizes_and_remarks() {
        let text = "Cargo.toml  1.2 KiB\nmy notes.txt  3 B\nsrc/\nsrc/lib.rs  9 B\nsrc/deep/\n\
            latest -> target/release\nMakefile\n[at least 12 more entries; list a folder further down]";
        let expected = Listing {
            files: names(&["Cargo.toml", "my notes.txt", "latest", "Makefile"]),
            folders: names(&["src/"]),
            cut: true,
        };
        assert_eq!(Listing::parse(text), expected);
    }

    #[test]
    fn a_title_is_no_name() {
        for title in [".:", "/home/me/project:", "3 entries in this folder", "Contents of src"] {
            let listing = Listing::parse(&format!("{title}\na.txt\nb/\n"));
            let expected =
                Listing { files: names(&["a.txt"]), folders: names(&["b/"]), cut: false };
            assert_eq!(listing, expected, "{title}");
        }
        assert!(Listing::parse("[empty folder]").is_empty());
    }

    #[test]
    fn readme_and_manifest_are_most_telling() {
        let telling = |files: &[&str]| {
            let listing = Listing { files: names(files), ..Listing::default() };
            listing.telling().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            telling(&["b.rs", "main.rs", "Cargo.toml", "README.md"]),
            ["README.md", "Cargo.toml"]
        );
        assert_eq!(telling(&["LICENSE", "notes.md", "main.py"]), ["main.py", "notes.md"]);
        assert_eq!(telling(&["a.png", "b.zip", "Cargo.lock", ".env", "secrets.json"]), [""; 0]);
    }
}
