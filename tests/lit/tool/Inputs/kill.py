"""kill.py COMMAND...: runs the command with a folder for FOLDER, kills it at many moments, and looks at its files."""
import os
import subprocess
import sys
import time



def command(folder):
    return [folder if word == "FOLDER" else word for word in sys.argv[1:]]


def files(folder):
    result = {}
    for name in os.listdir(folder):
        if name.endswith((".cc", ".h", ".o")):
            with open(os.path.join(folder, name), "rb") as file:
                result[name] = file.read()
    return result


begin = time.monotonic()
subprocess.run(command("whole"), check=True)
length = time.monotonic() - begin
whole = files("whole")
for attempt in range(20):
    folder = "killed%d" % attempt
    process = subprocess.Popen(command(folder))
    time.sleep(length * attempt / 16)
    process.kill()
    process.wait()
    for name, text in files(folder).items() if os.path.isdir(folder) else ():
        assert text == whole[name], "%s is half written" % name
