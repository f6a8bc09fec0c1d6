//! The errors of the compiler, whole.

#[test]
fn they_say_why_and_name_the_cure() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
