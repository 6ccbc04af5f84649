class @CLASS@ < Formula
  desc "@SUMMARY@"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: [@LICENSES@]

  depends_on :linux

  @PLATFORMS@

  def install
    bin.install "@NAME@"
    doc.install Dir["*"]
  end

  service do
    run [opt_bin/"@NAME@", "serve"]
    keep_alive successful_exit: false
    environment_variables HIKITE_DATA: var/"@NAME@"
  end

  test do
    assert_equal "@NAME@ #{version}", shell_output("#{bin}/@NAME@ --version").strip
  end
end
