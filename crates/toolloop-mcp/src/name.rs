//! [`tool_name`]: the name a model calls a server's tool by, legal for every API.

/// `server__tool`, in letters, digits, `_` and `-`, at most 64 characters, beginning with a
/// letter or `_`. Where that cannot hold the names, or `is_taken`, a short hash of both names
/// makes it theirs.
pub(crate) fn tool_name(server: &str, tool: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name: String = format!("{server}__{tool}")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    if name.len() <= LONGEST && !is_taken(&name) {
        return name;
    }
    let hash = format!("_{:08x}", hash(server, tool));
    name.truncate(LONGEST - hash.len());
    name + &hash
}

/// FNV-1a: the same in every build, as the names in a stored conversation must be.
fn hash(server: &str, tool: &str) -> u32 {
    let bytes = server.bytes().chain([0]).chain(tool.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What OpenAI and Gemini take; Anthropic takes more.
const LONGEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn free(server: &str, tool: &str) -> String {
        tool_name(server, tool, |_| false)
    }

    #[test]
    fn names_are_legal_everywhere() {
        assert_eq!(free("files", "read_file"), "files__read_file");
        assert_eq!(free("my.server", "git/log"), "my_server__git_log");
        assert_eq!(free("7zip", "ä"), "_7zip___");
        assert_eq!(free("-", "x"), "_-__x");
    }

    #[test]
    fn a_long_name_is_cut_and_stays_distinct() {
        let long = "x".repeat(80);
        let (one, other) = (free("s", &format!("{long}1")), free("s", &format!("{long}2")));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
        assert_eq!(one, free("s", &format!("{long}1")));
    }

    #[test]
    fn a_taken_name_is_told_apart() {
        let taken = |name: &str| name == "a__b__c";
        assert_eq!(tool_name("a", "b__c", taken), "a__b__c_87408081");
        assert_ne!(tool_name("a", "b__c", taken), tool_name("a__b", "c", taken));
    }
}
