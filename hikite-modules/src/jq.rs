//! Runs jq programs on one value. A program has no access to files, environment, further input or other programs. It
//! can still run forever or exhaust memory, so untrusted programs run in a separate process that can be killed.

mod error;
mod native;
mod value;
mod write;

use jaq_core::data::JustLut;
use jaq_core::load::{Arena, File, Loader, import};
use jaq_core::{Compiler, Ctx, Filter, Vars, load};
use jaq_json::{Map, Val, read};
use serde_json::Value;

pub use error::JqError;
use write::JqOutputWriter;

type JqData = JustLut<Val>;

/// The only global variable of jq.
const ENVIRONMENT: &str = "$ENV";

/// Built-in filters that would reveal the environment.
const ENVIRONMENT_FILTERS: [&str; 3] = ["env", "localtime", "strflocaltime"];

/// Replacements for these filters, and definitions that jq programs expect.
const REPLACEMENTS: &str = r#"
def env: {};
def localtime: gmtime;
def strflocaltime($format): strftime($format);
def inputs: empty;
def input: error("there is no further input: the answer is `.`");
def input_filename: null;
def halt: error("`halt` stops nothing here");
def halt($code): halt;
def halt_error: error;
def halt_error($code): error;
def ascii: [.] | implode;
def IN(s): any(s == .; .);
def IN(source; s): any(source == s; .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);
def INDEX(f): INDEX(.[]; f);
def tostream: path(def r: (.[]? | r), .; r) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def @csv: [.[] | if isstring then "\"" + gsub("\""; "\"\"") + "\"" elif . == null then "" else tojson end] | join(",");
def @tsv: [.[] | if isstring then gsub("\\\\"; "\\\\") | gsub("\t"; "\\t") | gsub("\n"; "\\n") | gsub("\r"; "\\r")
    elif . == null then "" else tojson end] | join("\t");
"#;

/// A compiled program.
pub struct JqProgram(Filter<JqData>);

impl std::fmt::Debug for JqProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JqProgram").finish_non_exhaustive()
    }
}

impl JqProgram {
    /// Compiles a program. The error includes the position.
    pub fn compile(text: &str) -> Result<Self, JqError> {
        Self::compile_with("", text, &[])
    }

    /// Compiles a program with definitions and variables, named without `$`.
    pub fn compile_with(definitions: &str, text: &str, variables: &[&str]) -> Result<Self, JqError> {
        let ours = load::parse(REPLACEMENTS, |parser| parser.defs()).unwrap_or_default();
        let user_definitions = load::parse(definitions, |parser| parser.defs())
            .ok_or_else(|| JqError::Invalid("the definitions cannot be read".into()))?;
        let known = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(ours);
        let definitions = known.map(within).chain(user_definitions);
        let natives = jaq_core::funs::<JqData>().chain(jaq_std::funs()).chain(jaq_json::funs()).chain(native::all());
        let natives: Vec<_> = natives.filter(|(name, ..)| !ENVIRONMENT_FILTERS.contains(name)).collect();
        let arena = Arena::default();
        let file = File { code: text, path: () };
        let modules = Loader::new(definitions).load(&arena, file).map_err(|errors| error::load(&errors))?;
        import(&modules, |_| Err(String::new())).map_err(|errors| error::load(&errors))?;
        let variables: Vec<String> = variables.iter().map(|name| format!("${name}")).collect();
        let globals = [ENVIRONMENT].into_iter().chain(variables.iter().map(String::as_str));
        let compiler = Compiler::default().with_funs(natives).with_global_vars(globals);
        let filter = compiler.compile(modules).map_err(|errors| error::compile(&errors))?;
        Ok(Self(filter))
    }

    /// Runs the program on JSON: one output is returned as it is, several as an array, none as null. The output is
    /// limited to `most` bytes.
    pub fn run(&self, input: &[u8], most: usize) -> Result<Vec<u8>, JqError> {
        let input = read::parse_single(input).map_err(|error| JqError::Failed(error.to_string()))?;
        let ctx = self.context([]);
        let mut writer = JqOutputWriter::new(most);
        let mut count = 0_usize;
        for output in self.0.id.run((ctx, input)) {
            let output = output.map_err(error::run)?;
            if count > 0 {
                writer.out.push(b',');
            }
            count += 1;
            writer.value(&output)?;
        }
        Ok(match count {
            0 => b"null".to_vec(),
            1 => writer.out,
            _ => [b"[", &writer.out[..], b"]"].concat(),
        })
    }

    /// Returns all outputs of the program. For trusted programs: there is no limit.
    pub fn outputs<'v>(
        &self,
        input: &Value,
        variables: impl IntoIterator<Item = &'v Value>,
    ) -> Result<Vec<Value>, JqError> {
        let ctx = self.context(variables.into_iter().map(value::to_jq));
        let outputs = self.0.id.run((ctx, value::to_jq(input)));
        outputs.map(|output| output.map(|output| value::of_jq(&output)).map_err(error::run)).collect()
    }

    fn context(&self, variables: impl IntoIterator<Item = Val>) -> Ctx<'_, JqData> {
        let environment = Val::obj(Map::default());
        Ctx::new(&self.0.lut, Vars::new([environment].into_iter().chain(variables)))
    }
}

/// Shortens the lifetime of a definition.
fn within<'a>(definition: load::parse::Def<&'static str>) -> load::parse::Def<&'a str> {
    definition
}

#[cfg(test)]
mod tests;
